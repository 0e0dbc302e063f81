//! The exported C functions: check the arguments, call one function, translate the error.

pub mod abi;
