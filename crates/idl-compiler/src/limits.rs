//! Limits that several stages share.

/// Maximum nesting depth of parentheses, operators, type expressions, modules, conditions, macro calls and
/// includes. It also applies to definitions that contain others by name: as members, elements or bases. It
/// bounds all recursion of the compiler, and of programs that walk a model.
pub const MAX_DEPTH: usize = 64;
