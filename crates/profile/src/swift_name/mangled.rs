//! Names that are still mangled: what can be told by their ends (swift/docs/ABI/Mangling.rst, "Function signature specialization",
//! "Thunks and partial applications").

use super::Wrapping;

/// The program's own main function where it is async; its parts have names of the same form.
pub(super) const ASYNC_MAIN: &str = "async_Main";

/// Whether a name is mangled as Swift's are.
pub(super) fn is_mangled(name: &str) -> bool {
    ["$s", "$S", "$e", "_$s", "_$S", "_$e", "_T0"].iter().any(|prefix| name.starts_with(prefix))
}

/// A name without the operators at its end that wrap the function, and these, the outermost first.
pub(super) fn peel(name: &str) -> (&str, Vec<Wrapping>) {
    const OPERATORS: [(&str, Wrapping); 6] = [
        ("TA", Wrapping::PartialApply),
        ("TR", Wrapping::Reabstraction),
        ("Tm", Wrapping::Merged),
        ("Tu", Wrapping::FunctionPointer),
        ("Tj", Wrapping::DispatchThunk),
        ("TW", Wrapping::Witness),
    ];
    let mut rest = name;
    let mut wrappings = Vec::new();
    loop {
        let operator =
            OPERATORS.iter().find_map(|(end, wrapping)| Some((rest.strip_suffix(end)?, *wrapping)));
        let part = || rest.rfind("TQ").max(rest.rfind("TY")).filter(|at| is_part(&rest[*at..]));
        match operator {
            // What a name begins with is no operator.
            Some((inner, wrapping)) if inner.len() > "$s".len() => {
                rest = inner;
                wrappings.push(wrapping);
            }
            _ => match part() {
                Some(at) if at > "$s".len() => {
                    rest = &rest[..at];
                    wrappings.push(Wrapping::Part);
                }
                _ => return (rest, wrappings),
            },
        }
    }
}

/// Whether a text is the operator of a part of an async function: `TQ0_` behind a call, `TY0_` behind a change of executors.
pub(super) fn is_part(text: &str) -> bool {
    let digits =
        text.strip_prefix("TQ").or_else(|| text.strip_prefix("TY")).and_then(|rest| rest.strip_suffix('_'));
    digits.is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()))
}
