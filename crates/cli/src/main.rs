//! The `pathlength` command: options, progress, errors; everything else is in the other crates.

mod arguments;
mod commands;
mod console;
mod messages;
mod progress;
mod ranges;

use std::ffi::OsString;
use std::process::ExitCode;

use arguments::Command;
use messages::Message;

fn main() -> ExitCode {
    translator::run_if_translator();
    // SAFETY: nothing has started a thread.
    unsafe { messages::begin() };
    let words: Vec<OsString> = std::env::args_os().collect();
    let arguments = arguments::parse(&words).unwrap_or_else(|error| reject(&error));
    let outcome = match arguments.command {
        Command::Run(options) => commands::run::run(&options),
        Command::Count(options) => commands::count::run(&options),
        Command::Static(options) => commands::statics::run(&options),
        Command::Compare(options) => commands::compare::run(&options),
        Command::Build(options) => commands::build::run(&options),
        Command::Study(command) => commands::study::run(&command),
        Command::Trace(options) => commands::trace::run(&options),
        Command::Qemu(options) => commands::qemu::run(&options),
        Command::Show(options) => commands::show::run(&options),
        Command::Export(options) => commands::export::run(&options),
        Command::Check(options) => commands::check::run(&options),
        Command::Strides(options) => commands::strides::run(&options),
        Command::Caches(options) => commands::caches::run(&options),
        Command::Annotate(options) => commands::annotate::run(&options),
        Command::Calls(options) => commands::calls::run(&options),
        Command::Faults(options) => commands::faults::run(&options),
        Command::Sharing(options) => commands::sharing::run(&options),
        Command::Units(options) => commands::units::run(&options),
        Command::Objects(options) => commands::objects::run(&options),
        Command::Mrc(options) => commands::mrc::run(&options),
        Command::Time(options) => commands::time::run(&options),
        Command::Sample(options) => commands::sample::run(&options),
        Command::Spike(command) => commands::spike::run(&command),
        Command::BranchLog(command) => commands::branch_log::run(&command),
        Command::System(command) => commands::system::run(&command),
        Command::Machines(options) => commands::machines::run(&options),
        Command::Doctor(options) => commands::doctor::run(&options),
        Command::Completions(options) => commands::completions::run(&options),
        Command::Man(options) => commands::man::run(&options),
    };
    match outcome {
        Ok(status) => status,
        // The reader of our output has closed the pipe: that is no error.
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            messages::report_failure(&format!("{error:#}"));
            ExitCode::FAILURE
        }
    }
}

/// Reports errors in the arguments; to a connected caller without the usage.
fn reject(error: &clap::Error) -> ! {
    if messages::is_connected() {
        let text = error.to_string();
        let sentence = text.lines().take_while(|line| !line.is_empty()).map(str::trim);
        let sentence = sentence.collect::<Vec<_>>().join(" ");
        messages::send(&Message::Failed(sentence.strip_prefix("error: ").unwrap_or(&sentence)));
        std::process::exit(error.exit_code());
    }
    error.exit()
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let is_closed = |error: &std::io::Error| error.kind() == std::io::ErrorKind::BrokenPipe;
    error.downcast_ref::<report::Error>().is_some_and(report::Error::is_broken_pipe)
        || error.downcast_ref().is_some_and(is_closed)
}
