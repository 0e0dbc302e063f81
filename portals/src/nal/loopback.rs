//! A fabric of one process whose arena is on the heap.
