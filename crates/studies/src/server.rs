//! A server of PostgreSQL in both builds: the data are made once, by the host's own build, and each run begins with a copy of
//! them. What asks the server is a program of the host.

mod host;

use std::fs;
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread::sleep;
use std::time::Duration;

use analysis::run_counts::RunDescription;
use engine::{Configuration, ProcessTreeCounts, UnitOfWork};
use output_files::ScratchFolder;
use serde::Serialize;
use serde::de::DeserializeOwned;
use session::forked_run;
use session::measure::Ending;
use session::process_tree::{self, CountFolder};
use session::scratch::temporary_folder;
use workloads::build::{Build, BuildFolders, build};
use workloads::toolchain::{NATIVE, Toolchain};
use workloads::workload::Workload;

use self::host::{HostProgram, as_user, become_user, failed, give_to_user};
use crate::database::{StudyProgress, lock};
use crate::environment::{check_library, processor, repeatable};
use crate::error::Error;
use ::host::interrupt::InterruptGuard;

/// A transaction in a server's process: from BEGIN to where the server is ready for the next one, whether this one was committed
/// or rolled back.
pub(crate) const TRANSACTION: &str = "BeginTransactionBlock through pgstat_report_stat";
/// What readers must know of the counts.
pub(crate) const REPEATABILITY: &str = "Two runs that begin with the same data have the same counts: there is one client, time is \
                                        dilated, and what the other processes do by the clock does not come between.";
/// What begins a server's process, which is a unit of work, too.
pub(crate) const PROCESS_START: &str = "InitPostgres";
/// How many times as long the server's timeouts take: nothing is done by the clock while a client asks.
const DILATION: u32 = 1000;
/// What runs are called in errors.
const MODE: &str = "cached";
/// The port of the first server, which names its socket.
const PORT: u16 = 5432;
/// The settings of every server: hardly anything is done by the clock, so that other processes do not come between (with more in the
/// log than `minimal`, snapshots are written to it every 15 seconds), and the database fits the buffers.
const SETTINGS: [&str; 12] = [
    "listen_addresses=",
    "autovacuum=off",
    "checkpoint_timeout=1h",
    "max_wal_size=4GB",
    "shared_buffers=256MB",
    "bgwriter_lru_maxpages=0",
    "bgwriter_delay=10s",
    "wal_writer_delay=10s",
    "wal_buffers=64MB",
    "wal_level=minimal",
    "max_wal_senders=0",
    "max_logical_replication_workers=0",
];

/// A program of the host that asks a server.
pub(crate) type Client<'a> = &'a dyn Fn(&ServerConnection) -> Command;

/// The builds of PostgreSQL, and the data that their runs begin with.
pub(crate) struct ServerBuilds {
    /// Those whose servers are observed; runs are told the index of theirs.
    pub(crate) builds: Vec<Build>,
    native: Build,
    sysroot: PathBuf,
    /// Where data are while servers run. It is removed at the end.
    folder: ScratchFolder,
    /// A study that is interrupted ends its servers and clients, and removes the folder.
    interrupt: InterruptGuard,
    /// Keeps others out of the builds' folder.
    _lock: fs::File,
}

/// How clients find a server.
pub(crate) struct ServerConnection {
    /// The folder of its socket.
    pub(crate) socket: PathBuf,
    /// Its port.
    port: u16,
    /// The folder of the host's own programs and libraries.
    pub(crate) native: PathBuf,
}

impl ServerConnection {
    /// For libpq.
    pub(crate) fn text(&self) -> String {
        format!("host={} port={} dbname=postgres user=postgres", self.socket.display(), self.port)
    }

    /// A program of PostgreSQL, which asks the server.
    pub(crate) fn program(&self, name: &str) -> Command {
        let mut command = Command::new(self.native.join("bin").join(name));
        command.arg("-h").arg(&self.socket).args(["-p", &self.port.to_string(), "-U", "postgres"]);
        command
    }
}

impl ServerBuilds {
    /// Builds PostgreSQL with these toolchains, and for the host.
    pub(crate) fn prepare(
        toolchains: &[Toolchain],
        folders: &BuildFolders,
        sysroot: &Path,
        progress: &(dyn Fn(StudyProgress) + Sync),
    ) -> Result<ServerBuilds, Error> {
        let workload = Workload::named("postgresql").expect("the workload is in the table");
        check_library(sysroot)?;
        let building = |step| progress(StudyProgress::Building(step));
        let mut builds = build(workload, &[toolchains, &[NATIVE]].concat(), folders, &building)?;
        let native = builds.pop().expect("the host's is the last");
        let _lock = lock(&folders.folder.join(workload.name).join("runs"))?;
        // The name of a socket may not be long.
        let folder = temporary_folder("server");
        let folder = folder.map_err(|error| Error::Server(format!("no temporary folder: {error}")))?;
        give_to_user(folder.path())?;
        let interrupt = InterruptGuard::new();
        Ok(ServerBuilds { builds, native, sysroot: sysroot.into(), folder, interrupt, _lock })
    }

    /// Makes the data of a study, by clients, or takes those that were made before: counts depend on them.
    pub(crate) fn load_once(&self, name: &str, clients: &[Client]) -> Result<(), Error> {
        // In the folder of the build, which is another one if the build changes.
        self.load_archived(&self.native_folder().join(format!("{name}.tar")), clients)
    }

    /// Makes the data, by clients.
    fn load(&self, clients: &[Client]) -> Result<(), Error> {
        let mut initdb = Command::new(self.native_folder().join("bin/initdb"));
        initdb.args(["--no-locale", "-E", "UTF8", "-A", "trust", "-N", "-U", "postgres", "-D"]);
        self.finish_as_user(initdb.arg(self.data("loaded")), "initdb")?;
        self.with_native("loaded", clients).map(drop)
    }

    /// As [`ServerBuilds::load`]; what was loaded before is in the archive, or is put there.
    pub(crate) fn load_archived(&self, archive: &Path, clients: &[Client]) -> Result<(), Error> {
        let loaded = self.data("loaded");
        if loaded.exists() {
            fs::remove_dir_all(&loaded).map_err(|error| Error::Files { path: loaded, error })?;
        }
        // Not as the servers' user: archives are among the builds, and keep the owner.
        let tar = |option: &str, archive: &Path| {
            let mut tar = Command::new("tar");
            tar.arg("--numeric-owner").arg(option).arg(archive).arg("-C").arg(self.folder.path());
            tar.arg(if option == "-cf" { "loaded" } else { "--same-permissions" });
            HostProgram::start(&mut tar, "tar")?.finish(&self.interrupt)
        };
        if archive.exists() {
            return tar("-xf", archive).map(drop);
        }
        self.load(clients)?;
        // An interrupted run leaves no archive.
        let unfinished = archive.with_extension("unfinished");
        tar("-cf", &unfinished)?;
        fs::rename(&unfinished, archive).map_err(|error| Error::Files { path: archive.into(), error })
    }

    /// Runs clients, one after another, while the host's own server has the data. Returns what they printed.
    pub(crate) fn with_native(&self, data: &str, clients: &[Client]) -> Result<Vec<Output>, Error> {
        self.unless_interrupted(self.ask_native(data, clients))
    }

    fn ask_native(&self, data: &str, clients: &[Client]) -> Result<Vec<Output>, Error> {
        let mut command = Command::new(&self.native.program);
        command.args(self.arguments(data, PORT)).stdin(Stdio::null()).stdout(Stdio::null());
        command.stderr(self.log(data)?).process_group(0);
        let mut server = as_user(&mut command).spawn().map_err(|error| failed("the server", &error))?;
        let connection = self.connection();
        let asked = self.await_server(data, &mut || server.try_wait().is_ok_and(|status| status.is_none()));
        let asked = asked.and_then(|()| {
            let finish = |client: &Client| self.finish_as_user(&mut client(&connection), "a client");
            clients.iter().map(finish).collect()
        });
        self.stop(data);
        let ended = server.wait();
        let outputs = asked?;
        match ended {
            Ok(status) if status.success() => Ok(outputs),
            ended => Err(Error::Server(format!("the server ended: {ended:?}"))),
        }
    }

    /// Counts the processes of the server of a build while a client asks it: units of work, in a copy of the data, which has
    /// the build's name then.
    pub(crate) fn count(
        &self,
        number: usize,
        work: &UnitOfWork,
        client: Client,
    ) -> Result<ProcessTreeCounts, Error> {
        let count = |configuration: &Configuration| count_server(configuration, work);
        self.run(number, client, count).map(|(tree, _)| tree)
    }

    /// Runs the server of a build on the engine, by `run`, while a client asks it, in a copy of the data, which has the build's
    /// name then. Returns the result, and what the client printed.
    pub(crate) fn run<T: Serialize + DeserializeOwned>(
        &self,
        number: usize,
        client: Client,
        run: impl Fn(&Configuration) -> Result<(T, Option<Ending>), String>,
    ) -> Result<(T, Output), Error> {
        Ok(self.run_concurrently(number, &[client], run)?.remove(0))
    }

    /// The same for several clients, each of which has a server of its own, all at the same time.
    pub(crate) fn run_concurrently<T: Serialize + DeserializeOwned>(
        &self,
        number: usize,
        clients: &[Client],
        run: impl Fn(&Configuration) -> Result<(T, Option<Ending>), String>,
    ) -> Result<Vec<(T, Output)>, Error> {
        let mut running = Vec::new();
        for client in 0..clients.len() as u16 {
            match self.start(number, client, &run) {
                Ok(server) => running.push(server),
                Err(error) => {
                    running.iter().for_each(|server| self.stop(&server.data));
                    return Err(error);
                }
            }
        }
        let begin = |(server, client): (&RunningServer<T>, &Client)| {
            self.await_server(&server.data, &mut || true)?;
            self.await_idleness(&server.data);
            HostProgram::start(as_user(&mut client(&self.connection_to(server.port))), "the client")
        };
        let asking: Vec<Result<HostProgram, Error>> = running.iter().zip(clients).map(begin).collect();
        let ended = running.into_iter().zip(asking).map(|(server, asking)| {
            let output = asking.and_then(|client| client.finish(&self.interrupt));
            self.stop(&server.data);
            self.finish(number, server, output)
        });
        // All have ended when the first error is returned.
        let ended: Vec<_> = ended.collect();
        self.unless_interrupted(ended.into_iter().collect())
    }

    /// Starts the server of a build, one of several.
    fn start<T: Serialize + DeserializeOwned>(
        &self,
        number: usize,
        client: u16,
        run: &impl Fn(&Configuration) -> Result<(T, Option<Ending>), String>,
    ) -> Result<RunningServer<T>, Error> {
        let build = &self.builds[number];
        let (data, port) = (copy_name(build.name, client), PORT + client);
        let mut copy = Command::new("cp");
        self.finish_as_user(copy.arg("-a").args([self.data("loaded"), self.data(&data)]), "cp")?;
        let program = build.program.clone();
        let mut configuration =
            repeatable(program, self.arguments(&data, port), processor(build), &self.sysroot);
        configuration.settings.dilation = DILATION;
        configuration.environment.push(format!("HOME={}", self.folder.path().display()).into());
        let log = self.log(&data)?;
        let run = |_: &mut (dyn FnMut(()) + Send)| -> Result<(T, Option<Ending>), String> {
            self.interrupt.restore();
            // SAFETY: both are open descriptors; what the server says is for errors.
            unsafe { libc::dup2(log.as_raw_fd(), libc::STDERR_FILENO) };
            become_user().map_err(|error| error.to_string())?;
            run(&configuration)
        };
        let of_build = |error| Error::Run { build: build.name, mode: MODE, error };
        Ok(RunningServer { data, port, running: forked_run::start(run).map_err(of_build)? })
    }

    /// Waits for the end of a server, whose client has printed this.
    fn finish<T: Serialize + DeserializeOwned>(
        &self,
        number: usize,
        server: RunningServer<T>,
        output: Result<Output, Error>,
    ) -> Result<(T, Output), Error> {
        let build = self.builds[number].name;
        let ended = server.running.wait(&mut |()| {});
        let ((result, ending), _) = ended.map_err(|error| Error::Run { build, mode: MODE, error })?;
        let output = output?;
        match ending {
            Some(Ending::Exited(0)) => Ok((result, output)),
            ending => {
                let reason = format!("the server ended: {ending:?}\n{}", self.logged(&server.data));
                Err(Error::Workload { build, mode: MODE, reason })
            }
        }
    }

    /// Compiles a client for the host, with PostgreSQL's own library: all files of C among these. It is compiled once.
    pub(crate) fn compile(
        &self,
        name: &str,
        files: &[(&str, &str)],
        flags: &[&str],
    ) -> Result<PathBuf, Error> {
        let folder = self.folder().join(name);
        let client = folder.join("client");
        if client.exists() {
            return Ok(client);
        }
        fs::create_dir(&folder).map_err(|error| Error::Files { path: folder.clone(), error })?;
        for (file, text) in files {
            let path = folder.join(file);
            fs::write(&path, text).map_err(|error| Error::Files { path, error })?;
        }
        let native = self.connection().native;
        let library = native.join("lib");
        let mut compiler = Command::new("cc");
        compiler
            .current_dir(&folder)
            .args(["-O2", "-std=gnu11", "-o", "client", "-I"])
            .arg(native.join("include"));
        compiler.args(flags).args(files.iter().map(|(file, _)| file).filter(|file| file.ends_with(".c")));
        compiler
            .arg("-L")
            .arg(&library)
            .args(["-lpq", "-lm"])
            .arg(format!("-Wl,-rpath,{}", library.display()));
        let output = compiler.output().map_err(|error| Error::Server(format!("cannot run cc: {error}")))?;
        if !output.status.success() {
            let reason = String::from_utf8_lossy(&output.stderr).into_owned();
            return Err(Error::Server(format!("the client {name} cannot be compiled: {reason}")));
        }
        Ok(client)
    }

    /// Runs a command to its end, as the user that servers have.
    fn finish_as_user(&self, command: &mut Command, what: &'static str) -> Result<Output, Error> {
        HostProgram::start(as_user(command), what)?.finish(&self.interrupt)
    }

    /// The result, or the interruption that may have caused an error.
    fn unless_interrupted<T>(&self, result: Result<T, Error>) -> Result<T, Error> {
        if self.interrupt.is_interrupted() { Err(Error::Interrupted) } else { result }
    }

    /// Where the server with these data writes what happens.
    fn log(&self, data: &str) -> Result<fs::File, Error> {
        let path = self.data(data).with_extension("log");
        fs::File::create(&path).map_err(|error| Error::Files { path, error })
    }

    /// What it wrote.
    fn logged(&self, data: &str) -> String {
        fs::read_to_string(self.data(data).with_extension("log")).unwrap_or_default()
    }

    /// Removes the copies of the data that a build's servers had.
    pub(crate) fn remove(&self, number: usize) {
        let copies = (0..).map(|client| self.data(&copy_name(self.builds[number].name, client)));
        for data in copies.take_while(|data| data.exists()) {
            // What stays is removed with the folder.
            let _ = fs::remove_dir_all(data);
        }
    }

    /// PostgreSQL's version.
    pub(crate) fn version(&self) -> Option<String> {
        crate::provenance::version_after(
            &self.native_folder().join("include/pg_config.h"),
            b"#define PG_VERSION ",
        )
    }

    fn native_folder(&self) -> PathBuf {
        self.native.program.ancestors().nth(2).unwrap_or(Path::new(".")).to_path_buf()
    }

    /// How clients find the first server, or the only one.
    pub(crate) fn connection(&self) -> ServerConnection {
        self.connection_to(PORT)
    }

    fn connection_to(&self, port: u16) -> ServerConnection {
        let native = std::path::absolute(self.native_folder()).unwrap_or_else(|_| self.native_folder());
        ServerConnection { socket: self.folder.path().into(), port, native }
    }

    /// A folder for what belongs to the runs.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    fn data(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn arguments(&self, data: &str, port: u16) -> Vec<std::ffi::OsString> {
        let mut arguments = vec!["-D".into(), self.data(data).into(), "-k".into(), self.folder.path().into()];
        arguments.extend(["-p".into(), port.to_string().into()]);
        SETTINGS.iter().for_each(|setting| arguments.extend(["-c".into(), setting.into()]));
        arguments
    }

    /// Waits until the server with these data answers, while `lives` says that it runs.
    fn await_server(&self, data: &str, lives: &mut dyn FnMut() -> bool) -> Result<(), Error> {
        const TRIES: u32 = 1200;
        for _ in 0..TRIES {
            // The last line but for spaces says whether the server is ready.
            let pid_file = fs::read_to_string(self.data(data).join("postmaster.pid"));
            if pid_file.is_ok_and(|text| text.lines().nth(7).is_some_and(|line| line.trim() == "ready")) {
                return Ok(());
            }
            if !lives() {
                break;
            }
            // A server that has no file yet could not be told to end.
            if self.postmaster(data).is_some() {
                self.unless_interrupted(Ok(()))?;
            }
            sleep(Duration::from_millis(100));
        }
        Err(Error::Server(format!("the server does not answer\n{}", self.logged(data))))
    }

    /// The process that listens.
    fn postmaster(&self, data: &str) -> Option<i32> {
        let pid_file = fs::read_to_string(self.data(data).join("postmaster.pid")).ok()?;
        pid_file.lines().next()?.parse().ok()
    }

    /// Waits until the server's processes have begun, and wait for something to do: none uses the host's processor any more.
    fn await_idleness(&self, data: &str) {
        const PAUSE: Duration = Duration::from_millis(300);
        const TRIES: usize = 100;
        let Some(postmaster) = self.postmaster(data) else { return };
        let mut used = None;
        for _ in 0..TRIES {
            let now = processor_ticks(postmaster);
            if used.as_ref() == Some(&now) {
                return;
            }
            used = Some(now);
            sleep(PAUSE);
        }
    }

    /// Asks the server to end after its clients' statements.
    fn stop(&self, data: &str) {
        if let Some(process) = self.postmaster(data) {
            // SAFETY: accesses no memory; the file exists as long as the server.
            unsafe { libc::kill(process, libc::SIGINT) };
        }
    }
}

/// Runs a server, and counts all of its processes.
pub(crate) fn count_server(
    configuration: &Configuration,
    work: &UnitOfWork,
) -> Result<(ProcessTreeCounts, Option<Ending>), String> {
    let folder = CountFolder::new(None).map_err(|error| error.to_string())?;
    let counted = process_tree::count(configuration, work, &folder, &RunDescription::default());
    counted.map(|it| (it.tree, it.ending)).map_err(|error| error.to_string())
}

/// The scheduler's time of a process and its children so far, in nanoseconds (proc(5): schedstat).
fn processor_ticks(process: i32) -> Vec<u64> {
    let children = fs::read_to_string(format!("/proc/{process}/task/{process}/children")).unwrap_or_default();
    let processes = children.split_whitespace().filter_map(|child| child.parse().ok()).chain([process]);
    let used = |process: i32| {
        let text = fs::read_to_string(format!("/proc/{process}/schedstat")).ok()?;
        text.split_whitespace().next()?.parse().ok()
    };
    processes.filter_map(used).collect()
}

/// A server on the engine.
struct RunningServer<T> {
    data: String,
    port: u16,
    running: forked_run::ForkedRun<(T, Option<Ending>), ()>,
}

/// The name of the copy of the data that a server of a build has, one of several.
fn copy_name(build: &str, client: u16) -> String {
    match client {
        0 => build.into(),
        _ => format!("{build}-{client}"),
    }
}
