//! What is to be said of child processes.

use heaptally_profile::model::{Children, Image};

use crate::escape::escape;
use crate::number::{count, counted};

/// How many programs are named.
const NAMED: usize = 6;

/// A sentence for each thing that there is to know, without a full stop.
///
/// ```text
/// 3 child processes were not recorded (cc1 ×2, sh); --follow-children records those that are not static or setuid
/// 1 child process could not be recorded (busybox): a static or setuid program, or no room for it
/// 2 descendants still run; what they record from now on is not in the profile
/// ```
pub fn sentences(children: &Children) -> Vec<String> {
    let mut sentences = Vec::new();
    let total = children.not_recorded_total();
    if total > 0 {
        let processes = counted(total, "child process", "child processes");
        let programs = programs(children);
        sentences.push(if children.followed {
            format!(
                "{processes} could not be recorded{programs}: a static or setuid program, one that another user or \
                 another root folder starts, an environment that was made anew, another pid namespace \
                 (--segment-dir), or no room"
            )
        } else {
            let were = if total == 1 { "was" } else { "were" };
            let what = if total == 1 { "it unless it is" } else { "those that are not" };
            format!("{processes} {were} not recorded{programs}; --follow-children records {what} static or setuid")
        });
    }
    if children.still_running > 0 {
        let run = if children.still_running == 1 { "runs; what it records" } else { "run; what they record" };
        let descendants = counted(children.still_running, "descendant", "descendants");
        sentences.push(format!("{descendants} still {run} from now on is not in the profile"));
    }
    sentences
}

/// ` (cc1 ×2, sh)`: most first, then by name.
fn programs(children: &Children) -> String {
    let mut programs: Vec<_> = children.not_recorded.iter().filter(|program| program.count > 0).collect();
    programs.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.program.cmp(&b.program)));
    let mut names: Vec<String> = programs
        .iter()
        .take(NAMED)
        .map(|program| {
            let name = if program.program.is_empty() { "(unnamed)".into() } else { escape(&program.program) };
            if program.count > 1 { format!("{name} ×{}", count(program.count)) } else { name.into_owned() }
        })
        .collect();
    let left = programs.len().saturating_sub(NAMED) as u64;
    if left > 0 {
        names.push(counted(left, "more program", "more programs"));
    }
    if names.is_empty() { String::new() } else { format!(" ({})", names.join(", ")) }
}

/// An image's name: that of its program, and whether it is that of children.
pub(crate) fn image_name(image: &Image) -> String {
    let label = escape(&image.label);
    match image.processes {
        0 => label.into_owned(),
        1 => format!("{label} (child)"),
        processes => format!("{label} ({} children)", count(processes)),
    }
}

#[cfg(test)]
mod tests {
    use heaptally_profile::model::ChildProgram;

    use super::*;

    fn children(programs: &[(&str, u64)]) -> Children {
        let program =
            |(program, count): &(&str, u64)| ChildProgram { program: (*program).into(), count: *count };
        Children { not_recorded: programs.iter().map(program).collect(), ..Children::default() }
    }

    #[test]
    fn children_are_counted_and_named() {
        assert!(sentences(&Children::default()).is_empty());
        assert_eq!(
            sentences(&children(&[("as", 1), ("cc1", 2), ("sh", 1)])),
            [
                "4 child processes were not recorded (cc1 ×2, as, sh); --follow-children records those that are not static or setuid"
            ]
        );
        assert_eq!(
            sentences(&children(&[("a\x1b[2J", 1)])),
            [
                "1 child process was not recorded (a\\u{1b}[2J); --follow-children records it unless it is static or setuid"
            ]
        );
    }

    #[test]
    fn many_programs_are_not_all_named() {
        let many: Vec<(String, u64)> = (0..9).map(|at| (format!("p{at}"), 1)).collect();
        let many: Vec<(&str, u64)> = many.iter().map(|(name, count)| (name.as_str(), *count)).collect();
        let sentence = sentences(&children(&many)).remove(0);
        assert!(sentence.contains("(p0, p1, p2, p3, p4, p5, 3 more programs)"), "{sentence}");
    }

    #[test]
    fn of_children_that_were_to_be_recorded_it_is_said_why_they_may_not_be() {
        let followed = Children { followed: true, still_running: 2, ..children(&[("busybox", 1)]) };
        let sentences = sentences(&followed);
        assert!(
            sentences[0].starts_with("1 child process could not be recorded (busybox): "),
            "{sentences:?}"
        );
        assert_eq!(
            sentences[1],
            "2 descendants still run; what they record from now on is not in the profile"
        );
    }
}
