//! Calls and servants whose interfaces are known at run time, together with compiled ones.

#[cfg(feature = "serde")]
mod json;
mod large;
mod meter;
mod pairs;
mod requests;
mod servants;
mod source;
mod values;
