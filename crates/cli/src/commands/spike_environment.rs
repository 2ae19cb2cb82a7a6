//! The commands of `pathlength spike` that use its database.

use std::ffi::OsStr;
use std::fs::Permissions;
use std::io::{ErrorKind, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::Arc;

use anyhow::Context;
use output_files::OutputFolder;
use spike::optimize::Options;
use spike::tables::number;
use spike_environment::{ApplicationPhase, Environment, ExportedImage, Made, Substitutes, tables};
use spike_manager::{Manager, ManagerSettings};

use super::run as run_command;
use crate::arguments::{
    CollectOptions, EngineOptions, InstrumentOptions, ListOptions, ManagerOptions, OptimizeOptions,
    RegisterOptions, RemoveOptions, SpikeExportOptions, SpikeRunOptions, UseOptions,
};
use crate::messages;

/// Registers a program.
pub fn register(options: &RegisterOptions) -> anyhow::Result<ExitCode> {
    let libraries = libraries(&options.engine, &options.program)?;
    let mut environment = options.database.open()?;
    let application = environment.register(&options.program, &libraries, options.name.as_deref())?;
    let view = environment.view(&application)?;
    text::message!("registered '{}' with {} images", view.name, view.images.len());
    for image in view.images.iter().filter(|image| image.note.starts_with("not optimizable")) {
        text::message!("note: {}: {}", image.path.display(), image.note);
    }
    Ok(ExitCode::SUCCESS)
}

/// The libraries that the program's loader finds, without the loader.
fn libraries(engine: &EngineOptions, program: &Path) -> anyhow::Result<Vec<PathBuf>> {
    // A file that is no image, or does not exist, is reported as that.
    image::Image::open(program)?;
    let configuration = engine.program().configuration(program, &[], true);
    let images = session::startup::images(&configuration).with_context(|| {
        format!(
            "{}: its libraries cannot be found; does pathlength run start it? --env LD_LIBRARY_PATH=DIR names a folder",
            program.display()
        )
    })?;
    Ok(images.into_iter().skip(2).map(|image| image.path).collect())
}

/// The application that an option names.
fn find(environment: &Environment, name: &Path) -> anyhow::Result<spike_environment::Application> {
    Ok(environment.application(&name.to_string_lossy())?)
}

/// Instruments an application.
pub fn instrument(options: &InstrumentOptions) -> anyhow::Result<ExitCode> {
    let mut environment = options.database.open()?;
    let application = find(&environment, &options.image)?;
    environment.instrument(&application, options.replace, &mut |made| report(made, "instrumented"))?;
    Ok(ExitCode::SUCCESS)
}

/// Optimizes an application.
pub fn optimize(options: &OptimizeOptions, settings: Options) -> anyhow::Result<ExitCode> {
    let mut environment = options.database.open()?;
    let application = find(&environment, &options.image)?;
    environment.optimize(&application, settings, &mut |made| report(made, "optimized"))?;
    let application = environment.application(&application.name)?;
    crate::console::write(&[tables::images(&environment.view(&application)?)], &options.report())?;
    Ok(ExitCode::SUCCESS)
}

/// Says what became of an image.
fn report(made: &Made, what: &str) {
    let image = made.image.display();
    match (&made.problem, made.matched) {
        (Some(problem), _) => text::message!("note: {image} is not {what}: {problem}"),
        (None, Some(share)) => text::message!(
            "{image}: {what} by the profile of an older file, of which {:.1} % of the executed instructions match",
            100.0 * share
        ),
        (None, None) => text::message!("{image}: {what}"),
    }
}

/// Runs an instrumented program, and collects.
pub fn collect(options: &CollectOptions) -> anyhow::Result<ExitCode> {
    let Some((program, arguments)) = options.words.split_first() else {
        say_collected(&mut options.database.open()?)?;
        return Ok(ExitCode::SUCCESS);
    };
    let mut environment = options.database.open()?;
    let application = find(&environment, Path::new(program))?;
    environment.instrument_images(&application, false, &mut |_| ())?;
    let program = match Path::new(program).exists() {
        true => PathBuf::from(program),
        // The application's name.
        false => environment.program(&application)?,
    };
    // No process that the program forks may have the database open.
    drop(environment);
    let substitutes =
        Substitutes { folder: options.database.folder()?, phase: Some(ApplicationPhase::Instrumented) };
    let mut configuration = options.engine.program().configuration(&program, arguments, false);
    substitute(&mut configuration.settings, &options.engine, &substitutes)?;
    run_command::execute(&configuration, None, || collect_after(&substitutes.folder))
}

/// Runs a program with the chosen versions of registered images.
pub fn run(options: &SpikeRunOptions) -> anyhow::Result<ExitCode> {
    let substitutes = Substitutes {
        folder: options.database.folder()?,
        phase: options.version.map(ApplicationPhase::from),
    };
    // Errors of the database are reported before the program starts.
    drop(options.database.open()?);
    let program = &options.program;
    let mut configuration =
        options.engine.program().configuration(program.path(), &program.arguments(), false);
    configuration.name.clone_from(&options.name);
    substitute(&mut configuration.settings, &options.engine, &substitutes)?;
    let is_nested = options.nested;
    let ended = || {
        if !is_nested {
            collect_after(&substitutes.folder);
        }
    };
    if !is_nested && is_host_program(program.path()) {
        return run_on_host(&configuration, ended);
    }
    run_command::execute(&configuration, None, ended)
}

/// Whether the host can execute a file, or finds it in its PATH, and the engine cannot.
fn is_host_program(program: &Path) -> bool {
    let is_name = program.components().count() == 1 && !program.exists();
    is_name || program.is_file() && image::Image::open(program).is_err()
}

/// Runs a program of the host, such as a shell: the registered applications that it starts execute their versions.
fn run_on_host(configuration: &engine::Configuration, ended: impl FnOnce()) -> anyhow::Result<ExitCode> {
    let program = configuration.program.display();
    let mut command = Command::new(&configuration.program);
    command.args(&configuration.arguments).env_clear();
    for variable in configuration.environment.iter().chain(&configuration.settings.host_environment) {
        let bytes = variable.as_bytes();
        let equals = bytes.iter().position(|&byte| byte == b'=').unwrap_or(bytes.len());
        let value = bytes.get(equals + 1..).unwrap_or_default();
        command.env(OsStr::from_bytes(&bytes[..equals]), OsStr::from_bytes(value));
    }
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) => {
            messages::report_failure(&format!("{program}: cannot be started: {error}"));
            // As shells and env do.
            return Ok(ExitCode::from(if error.kind() == ErrorKind::NotFound { 127 } else { 126 }));
        }
    };
    // Ctrl-C is the program's: this command waits for it and collects.
    for signal in [libc::SIGINT, libc::SIGQUIT] {
        // SAFETY: no handler of this process is replaced.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
    let status = child.wait().with_context(|| format!("{program}: cannot be waited for"))?;
    ended();
    Ok(ExitCode::from(status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or_default()) as u8))
}

/// Loads the versions in place of registered images, also in programs that programs of the host start.
fn substitute(
    settings: &mut engine::SystemSettings,
    engine: &EngineOptions,
    substitutes: &Substitutes,
) -> anyhow::Result<()> {
    let mut words = vec!["spike".into(), "run".into(), "--nested".into(), "--database".into()];
    words.push(substitutes.folder.clone().into_os_string());
    if let Some(phase) = substitutes.phase {
        words.extend(["--version".into(), phase.name().into()]);
    }
    if !settings.host_environment.is_empty() {
        settings.host_environment = engine.program().host_environment(&words)?;
    }
    settings.substitution = Some(Arc::new(substitutes.clone()));
    Ok(())
}

/// Collects when a program has ended. A failure is not the program's: the next command collects.
fn collect_after(folder: &Path) {
    let collected = Environment::open(folder).map_err(anyhow::Error::from);
    if let Err(error) = collected.and_then(|mut environment| say_collected(&mut environment)) {
        text::message!("note: the profiles are not up to date, the next command collects: {error:#}");
    }
}

fn say_collected(environment: &mut Environment) -> anyhow::Result<()> {
    for collected in environment.collect()? {
        let image = collected.image.display();
        match &collected.executed {
            Ok(executed) => {
                text::message!("{image}: profile of {} executed instructions", number(*executed))
            }
            Err(problem) => text::message!(
                "note: {image}: the counts cannot be used: {problem}; to begin again, pathlength spike instrument --replace"
            ),
        }
    }
    Ok(())
}

/// Chooses what an application executes.
pub fn choose(options: &UseOptions) -> anyhow::Result<ExitCode> {
    let mut environment = options.database.open()?;
    let application = environment.application(&options.application)?;
    let phase = ApplicationPhase::from(options.version);
    if phase == ApplicationPhase::Instrumented {
        environment.instrument(&application, false, &mut |made| report(made, "instrumented"))?;
        return Ok(ExitCode::SUCCESS);
    }
    if phase == ApplicationPhase::Optimized
        && !environment.view(&application)?.images.iter().any(|image| image.optimized)
    {
        return Err(spike_environment::Error::NotOptimized(application.name).into());
    }
    environment.choose(&application, phase)?;
    Ok(ExitCode::SUCCESS)
}

/// Writes optimized images and profiles.
pub fn export(options: &SpikeExportOptions) -> anyhow::Result<ExitCode> {
    let mut environment = options.database.open()?;
    let application = environment.application(&options.application)?;
    if let Some(folder) = &options.output {
        export_images(&environment.export(&application)?, folder)?;
    }
    if let Some(path) = &options.profile {
        let bytes = environment.profile(&application)?.encode();
        report::write_file(path, |out| Ok(out.write_all(&bytes)?))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Writes images into a folder, under their own names.
fn export_images(images: &[ExportedImage], folder: &Path) -> anyhow::Result<()> {
    images.iter().for_each(|image| output_files::protect(&image.original));
    let mut outputs = OutputFolder::new(folder)?;
    let mut names = Vec::new();
    for image in images {
        let name = image.original.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let mut file = outputs.create(&name)?;
        let written = file.write_all(&image.bytes);
        let path = folder.join(&name);
        written
            .and_then(|()| file.set_permissions(Permissions::from_mode(image.mode)))
            .with_context(|| format!("cannot write {}", path.display()))?;
        names.push(path);
    }
    outputs.commit()?;
    names.iter().for_each(|path| text::message!("{}", path.display()));
    Ok(())
}

/// Removes an application.
pub fn remove(options: &RemoveOptions) -> anyhow::Result<ExitCode> {
    let mut environment = options.database.open()?;
    let application = environment.application(&options.application)?;
    environment.remove(&application)?;
    Ok(ExitCode::SUCCESS)
}

/// Serves the manager's page.
pub fn manager(options: &ManagerOptions) -> anyhow::Result<ExitCode> {
    // Errors of the database are reported before the page is.
    drop(options.database.open()?);
    let sysroot = std::path::absolute(&options.sysroot)?.into_os_string();
    let settings = ManagerSettings {
        folder: options.database.folder()?,
        program: std::env::current_exe()?,
        engine: vec!["--cpu".into(), options.cpu.to_string().into(), "--sysroot".into(), sysroot],
        port: options.port,
    };
    let manager = Manager::new(settings)
        .with_context(|| format!("cannot listen at port {}; choose another one with --port", options.port))?;
    text::message!("the page is at {} (Ctrl-C ends it)", manager.address());
    manager.serve();
    Ok(ExitCode::SUCCESS)
}

/// Lists applications, or the images of one.
pub fn list(options: &ListOptions) -> anyhow::Result<ExitCode> {
    options.output.check(false)?;
    let mut environment = options.database.open()?;
    say_collected(&mut environment)?;
    let table = match &options.application {
        Some(name) => {
            let application = environment.application(name)?;
            tables::images(&environment.view(&application)?)
        }
        None => tables::applications(&environment.views()?),
    };
    crate::console::write(&[table], &options.output)?;
    Ok(ExitCode::SUCCESS)
}
