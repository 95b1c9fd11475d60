//! Limits that several stages share.

/// Maximum nesting depth of parentheses, operators, types, modules, conditions, macro calls, includes, and
/// types that contain types. It bounds all recursion of the compiler, and of programs that walk a model.
pub const MAX_DEPTH: usize = 64;
