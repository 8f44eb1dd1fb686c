//! `heaptally completions`: prints a script that has a shell complete this command's words.

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use crate::Arguments;
use crate::terminal::print;

const PLACES: &str = "\
Where the script goes:

bash:
  heaptally completions bash > ~/.local/share/bash-completion/completions/heaptally
zsh, into a folder that is in $fpath before compinit runs:
  heaptally completions zsh > FOLDER/_heaptally
fish:
  heaptally completions fish > ~/.config/fish/completions/heaptally.fish
elvish, in ~/.config/elvish/rc.elv:
  eval (heaptally completions elvish | slurp)
powershell, in $PROFILE:
  heaptally completions powershell | Out-String | Invoke-Expression

New shells complete then. After an update of heaptally the script wants to be written again.";

/// Has words behind `run … --` completed as the program's: by bash-completion where it is loaded, else the program's
/// name by bash and its arguments as files.
const BASH_PROGRAM: &str = r#"
_heaptally_or_program() {
    local at
    if [[ ${COMP_WORDS[1]} == run ]]; then
        for ((at = 2; at < COMP_CWORD; at++)); do
            if [[ ${COMP_WORDS[at]} == -- ]]; then
                COMPREPLY=()
                if declare -F _comp_command_offset >/dev/null; then
                    _comp_command_offset $((at + 1))
                elif declare -F _command_offset >/dev/null; then
                    _command_offset $((at + 1))
                elif ((at + 1 == COMP_CWORD)); then
                    COMPREPLY=($(compgen -c -- "$2"))
                fi
                return 0
            fi
        done
    fi
    _heaptally "$@"
}
complete -F _heaptally_or_program -o bashdefault -o default heaptally
"#;

/// Prints a script that has a shell complete this command's words.
#[derive(Args, Debug)]
#[command(after_help = PLACES)]
pub(crate) struct Completions {
    /// The shell that will read the script.
    shell: Shell,
}

impl Completions {
    /// Prints.
    pub(crate) fn run(self) -> anyhow::Result<u8> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut Arguments::command(), "heaptally", &mut script);
        let mut script = String::from_utf8(script)?;
        if self.shell == Shell::Bash {
            script.push_str(BASH_PROGRAM);
        }
        print(&script)?;
        Ok(0)
    }
}
