//! PostgreSQL's server, with the host's pgbench as its client.

use std::os::unix::fs::chown;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use workloads::build::{BuildFolders, build};
use workloads::toolchain::{BYTE_WORD, NATIVE};
use workloads::workload::Workload;

use crate::Error;
use crate::measure::{MeasuredCommand, Used};

/// The port in the name of the socket, and the user that the server runs as if root measures.
const PORT: &str = "54321";
const NOBODY: u32 = 65534;

/// The resources that a server used.
#[derive(Clone, Copy)]
pub struct ServedTransactions {
    /// For transactions, when it had served others before.
    pub transactions: Used,
    /// From its start to its end, with the command that counts it.
    pub whole: Used,
}

/// The builds, and a database with the tables of pgbench.
pub struct BenchServer {
    alpha: PathBuf,
    native: PathBuf,
    directory: PathBuf,
}

impl BenchServer {
    /// Builds PostgreSQL if need be, and makes the database in a directory.
    pub fn new(options: &BuildFolders, directory: &Path) -> Result<BenchServer, Error> {
        eprintln!("PostgreSQL: building; the first time takes some minutes");
        let workload = Workload::named("postgresql").ok_or("no such workload")?;
        let builds = build(workload, &[BYTE_WORD, NATIVE], options, &|_| {})?;
        let bin =
            |index: usize| Some(builds.get(index)?.program.canonicalize().ok()?.parent()?.to_path_buf());
        let [alpha, native] = [0, 1].map(bin).map(|bin| bin.ok_or("the build has no programs"));
        let directory = directory.join("server");
        // Another part may have left one.
        let _ = std::fs::remove_dir_all(&directory);
        std::fs::create_dir(&directory)?;
        if is_root() {
            chown(&directory, Some(NOBODY), Some(NOBODY))?;
            // The way to it must be open, too.
            let above = directory.parent().ok_or("no directory")?;
            std::fs::set_permissions(above, std::os::unix::fs::PermissionsExt::from_mode(0o755))?;
        }
        let server = BenchServer { alpha: alpha?, native: native?, directory };
        let data = server.directory.join("loaded");
        let mut initdb = server.client("initdb");
        succeed(initdb.args(["--no-locale", "-E", "UTF8", "-A", "trust", "-N", "-D"]).arg(&data))?;
        let mut program = Command::new(server.native.join("postgres"));
        let load =
            |_| succeed(server.client("pgbench").args(["-i", "-q"]).args(server.socket()).arg("postgres"));
        server.serve(&mut program, &data, load)?;
        Ok(server)
    }

    /// Where its files are, in which its user can write.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The processor time of the server, all its processes, for the transactions of clients.
    pub fn measure(&self, runner: &MeasuredCommand, clients: u32, transactions: u32) -> Result<Used, Error> {
        let mut program = runner.command(&self.alpha.join("postgres"), &self.native.join("postgres"));
        let mut pgbench = self.pgbench(clients, transactions);
        self.serve(&mut program, &self.fresh_data()?, |_| succeed(&mut pgbench))
    }

    /// The same, apart from what the server needs to start and to end: the transactions come after as many others. If `attach` is a
    /// command, to which the server's process is added, it counts the server meanwhile.
    pub fn measure_serving(
        &self,
        runner: &MeasuredCommand,
        attach: Option<&[&Path]>,
        clients: u32,
        transactions: u32,
    ) -> Result<ServedTransactions, Error> {
        let mut program = runner.command(&self.alpha.join("postgres"), &self.native.join("postgres"));
        let mut of_transactions = Used::default();
        let mut transact = |server| {
            succeed(&mut self.pgbench(clients, transactions))?;
            let before = Used::of_process(server)?;
            succeed(&mut self.pgbench(clients, transactions))?;
            of_transactions = Used::of_process(server)? - before;
            Ok(())
        };
        let data = self.fresh_data()?;
        let mut counting = Used::default();
        let used = self.serve(&mut program, &data, |process| match attach {
            None => transact(postmaster(&data)?),
            Some(attach) => {
                let counted = self.while_attached(attach, process, || transact(process))?;
                counting = counted;
                Ok(())
            }
        })?;
        Ok(ServedTransactions { transactions: of_transactions, whole: used + counting })
    }

    /// Does something while a command is attached to the server. Returns what the command used.
    fn while_attached(
        &self,
        attach: &[&Path],
        server: u32,
        work: impl FnOnce() -> Result<(), Error>,
    ) -> Result<Used, Error> {
        let mut command = Command::new(attach[0]);
        command.args(&attach[1..]).arg(server.to_string()).current_dir(&self.directory);
        as_user(&mut command);
        let attached = command.stdin(Stdio::null()).stdout(Stdio::null()).spawn()?;
        // The processes join within milliseconds.
        std::thread::sleep(Duration::from_secs(1));
        let worked = work();
        let (status, used) = ended_by(&attached, libc::SIGTERM)?;
        worked?;
        if status.success() { Ok(used) } else { Err(format!("{command:?}: {status}").into()) }
    }

    fn fresh_data(&self) -> Result<PathBuf, Error> {
        let data = self.directory.join("data");
        let _ = std::fs::remove_dir_all(&data);
        succeed(Command::new("cp").arg("-a").arg(self.directory.join("loaded")).arg(&data))?;
        Ok(data)
    }

    /// Clients that share transactions.
    fn pgbench(&self, clients: u32, transactions: u32) -> Command {
        let mut pgbench = self.client("pgbench");
        let each = (transactions / clients).max(1).to_string();
        pgbench.args(["-n", "-c", &clients.to_string(), "-t", &each]).args(self.socket()).arg("postgres");
        pgbench
    }

    /// A program of the host's build, as a user that PostgreSQL accepts.
    fn client(&self, name: &str) -> Command {
        let mut command = Command::new(self.native.join(name));
        as_user(&mut command);
        command.current_dir(&self.directory).stdin(Stdio::null());
        command
    }

    fn socket(&self) -> [String; 4] {
        ["-h".into(), self.directory.display().to_string(), "-p".into(), PORT.into()]
    }

    /// Starts the server, waits for it, does something, and stops it; what the server used.
    fn serve(
        &self,
        program: &mut Command,
        data: &Path,
        work: impl FnOnce(u32) -> Result<(), Error>,
    ) -> Result<Used, Error> {
        let log = std::fs::File::create(self.directory.join("log"))?;
        program.arg("-D").arg(data).args([
            "-p",
            PORT,
            "-c",
            "listen_addresses=",
            "-c",
            "autovacuum=off",
            "-k",
        ]);
        program.arg(&self.directory).current_dir(&self.directory).stdin(Stdio::null());
        program.stdout(log.try_clone()?).stderr(log);
        as_user(program);
        let process = program.spawn().map_err(|error| format!("the server does not start: {error}"))?;
        let worked = self.wait_until_ready().and_then(|()| work(process.id()));
        let (status, usage) = ended_by(&process, libc::SIGINT)?;
        let log = || std::fs::read_to_string(self.directory.join("log")).unwrap_or_default();
        worked.map_err(|error| format!("{error}; the server's log: {}", log()))?;
        if status.success() { Ok(usage) } else { Err(format!("the server failed: {}", log()).into()) }
    }

    fn wait_until_ready(&self) -> Result<(), Error> {
        for _ in 0..600 {
            let mut question = self.client("psql");
            question.args(self.socket()).args(["-X", "-q", "-c", "select 1", "postgres"]);
            if question.stdout(Stdio::null()).stderr(Stdio::null()).status()?.success() {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        Err("the server does not answer".into())
    }
}

/// The process that listens, which may be a child of the command that counts.
fn postmaster(data: &Path) -> Result<u32, Error> {
    let text = std::fs::read_to_string(data.join("postmaster.pid"))?;
    Ok(text.lines().next().unwrap_or_default().parse()?)
}

/// Ends a process by a signal. Returns how it ended, and what it and all processes that it waited for have used.
fn ended_by(child: &Child, signal: i32) -> Result<(ExitStatus, Used), Error> {
    let process = child.id() as i32;
    // SAFETY: plain calls; the process is a child that nobody else waits for.
    unsafe {
        libc::kill(process, signal);
        let (mut status, mut usage) = (0, std::mem::zeroed());
        if libc::wait4(process, &mut status, 0, &mut usage) != process {
            return Err(std::io::Error::last_os_error().into());
        }
        Ok((ExitStatus::from_raw(status), Used::new(&usage)))
    }
}

fn is_root() -> bool {
    // SAFETY: cannot fail.
    unsafe { libc::geteuid() == 0 }
}

/// PostgreSQL does not run as root.
fn as_user(command: &mut Command) {
    if is_root() {
        command.uid(NOBODY).gid(NOBODY);
    }
}

pub fn succeed(command: &mut Command) -> Result<(), Error> {
    let output = command.stdin(Stdio::null()).output().map_err(|error| format!("{command:?}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("{command:?}: {}: {}", output.status, String::from_utf8_lossy(&output.stderr)).into())
}
