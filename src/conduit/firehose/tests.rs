//! Tests of the firehose.
