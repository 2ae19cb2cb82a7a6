//! `pathlength completions`: scripts by which shells complete commands, options, their values, and files.

use std::io::Write;
use std::process::ExitCode;

use clap::CommandFactory;
use clap_complete::Shell;

use crate::arguments::{Arguments, CompletionsOptions};

/// For bash, clap's script proposes options for an empty word, and so no files. Options are proposed only after a dash
/// here; where nothing is proposed, bash itself completes files.
const BASH_FILES: &str = r#"
_pathlength_or_files() {
    _pathlength "$@"
    [[ -n "$2" ]] && return
    local word words=()
    for word in "${COMPREPLY[@]}"; do
        [[ "$word" == -* ]] || words+=("$word")
    done
    COMPREPLY=("${words[@]}")
}
complete -F _pathlength_or_files -o bashdefault -o default pathlength
"#;

/// Writes the shell's script.
pub fn run(options: &CompletionsOptions) -> anyhow::Result<ExitCode> {
    let mut script = Vec::new();
    clap_complete::generate(options.shell, &mut Arguments::command(), "pathlength", &mut script);
    if options.shell == Shell::Bash {
        script.extend(BASH_FILES.bytes());
    }
    std::io::stdout().write_all(&script)?;
    Ok(ExitCode::SUCCESS)
}
