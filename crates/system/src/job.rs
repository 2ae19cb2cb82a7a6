//! The job of a guest: a program, with files that are put in and taken out.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use crate::cpio::Archive;
use crate::network::GuestNetwork;

/// A file of the host, and its path in the guest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedFile {
    /// The path on the host.
    pub host: PathBuf,
    /// The path in the guest.
    pub guest: PathBuf,
}

/// A program with its arguments.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GuestCommand {
    /// Its path in the guest.
    pub program: PathBuf,
    /// Its arguments, the first of them its name.
    pub arguments: Vec<OsString>,
}

/// A file by which a program shows that it is ready.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AwaitedFile {
    /// Its path in the guest.
    pub path: PathBuf,
    /// A text that its first 64 KiB must contain, if that matters.
    pub text: Option<OsString>,
}

/// A program to run in the guest, with others that it needs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GuestJob {
    /// The program, whose status and output are the result.
    pub command: GuestCommand,
    /// Programs that are started before it, and killed after it.
    pub background: Vec<GuestCommand>,
    /// Files that they make; the program is started once all are there.
    pub awaited: Vec<AwaitedFile>,
    /// The number of the user and the group that all of them run as.
    pub user: u32,
    /// The environment of all.
    pub environment: Vec<OsString>,
    /// The file in the guest that the program reads as its standard input; empty if there is none.
    pub input: Option<PathBuf>,
    /// The working directory, which is made.
    pub folder: PathBuf,
    /// Where the disk's file system is mounted, if there is a disk; files below are put there.
    pub disk: Option<PathBuf>,
    /// The guest's time at the beginning, in seconds since 1970.
    pub time: u64,
    /// Files and folders that are put in, the program and its libraries among them.
    pub files: Vec<SharedFile>,
    /// Files that are taken out.
    pub outputs: Vec<SharedFile>,
}

/// The files that the guest left on its disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GuestResult {
    /// The program's status, as `wait` returns it.
    pub status: i32,
    /// Its standard output.
    pub output: Vec<u8>,
    /// Its standard error.
    pub errors: Vec<u8>,
    /// The other files, in the order in which they were asked for; None for those that do not exist.
    pub files: Vec<Option<Vec<u8>>>,
}

/// Where the first process mounts file systems of the kernel's (`init.c`).
const KERNEL_FOLDERS: [&str; 3] = ["/proc", "/sys", "/dev"];
/// The file of users.
const USERS: &str = "/etc/passwd";

/// The letters of the words of a job, as `init.c` reads them.
mod word {
    /// A command: the program is the last one.
    pub const PROGRAM: u8 = b'p';
    /// Of the last command.
    pub const ARGUMENT: u8 = b'a';
    pub const AWAITED: u8 = b'w';
    /// Of the last awaited file.
    pub const AWAITED_TEXT: u8 = b'x';
    pub const USER: u8 = b'u';
    pub const INPUT: u8 = b'i';
    pub const FOLDER: u8 = b'd';
    pub const DISK: u8 = b'k';
    pub const VARIABLE: u8 = b'e';
    pub const OUTPUT: u8 = b'o';
    pub const TIME: u8 = b't';
    /// The kind of network interfaces, and their offloads.
    pub const NETWORK: u8 = b'n';
    pub const OFFLOADS: u8 = b'f';
}

impl GuestJob {
    /// The first path that the guest could not see, with the folder that hides it.
    pub fn hidden_path(&self) -> Option<(&Path, &'static str)> {
        let files = self.files.iter().map(|file| file.guest.as_path());
        let mut paths = files.chain([self.folder.as_path()]).chain(self.disk.as_deref());
        paths.find_map(|path| {
            let folder = KERNEL_FOLDERS.into_iter().find(|folder| path.starts_with(folder))?;
            Some((path, folder))
        })
    }

    /// The guest's first file system: the first process, the job, and all files.
    pub fn file_system(&self, init: &Path, network: Option<GuestNetwork>) -> io::Result<Vec<u8>> {
        let at = |path: &Path| {
            let path = path.to_path_buf();
            move |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()))
        };
        let mut archive = Archive::owned_by(self.user);
        for folder in ["proc", "sys", "dev", "tmp", "root", "etc"] {
            archive.folder(Path::new(folder));
        }
        archive.console();
        archive.folder(&self.folder);
        self.disk.iter().for_each(|disk| archive.folder(disk));
        archive.host(init, Path::new("init")).map_err(at(init))?;
        archive.file(Path::new(".job"), 0o600, &self.encode(network))?;
        if !self.files.iter().any(|file| file.guest == Path::new(USERS)) {
            archive.file(Path::new(USERS), 0o644, self.users().as_bytes())?;
        }
        for file in &self.files {
            archive.host(&file.host, &file.guest).map_err(at(&file.host))?;
        }
        Ok(archive.finish())
    }

    /// The users as programs look them up: some ask for the name of the one that they run as.
    fn users(&self) -> String {
        let own = match self.user {
            0 => String::new(),
            user => format!("user:x:{user}:{user}::/:/bin/sh\n"),
        };
        format!("root:x:0:0::/root:/bin/sh\n{own}")
    }

    fn encode(&self, network: Option<GuestNetwork>) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut put = |kind: u8, text: &OsStr| {
            bytes.push(kind);
            bytes.extend_from_slice(text.as_bytes());
            bytes.push(0);
        };
        put(word::TIME, self.time.to_string().as_ref());
        for command in self.background.iter().chain([&self.command]) {
            put(word::PROGRAM, command.program.as_ref());
            command.arguments.iter().for_each(|argument| put(word::ARGUMENT, argument));
        }
        for AwaitedFile { path, text } in &self.awaited {
            put(word::AWAITED, path.as_ref());
            text.iter().for_each(|text| put(word::AWAITED_TEXT, text));
        }
        put(word::USER, self.user.to_string().as_ref());
        self.input.iter().for_each(|path| put(word::INPUT, path.as_ref()));
        put(word::FOLDER, self.folder.as_ref());
        self.disk.iter().for_each(|path| put(word::DISK, path.as_ref()));
        self.environment.iter().for_each(|variable| put(word::VARIABLE, variable));
        self.outputs.iter().for_each(|output| put(word::OUTPUT, output.guest.as_ref()));
        if let Some(network) = network {
            put(word::NETWORK, network.kind().as_ref());
            network.offloads.iter().for_each(|level| put(word::OFFLOADS, level.name().as_ref()));
        }
        bytes
    }
}

/// The first and the last bytes of a complete result.
const MAGIC: [u8; 8] = *b"PLRESULT";

impl GuestResult {
    /// Reads a result from the guest's disk; None if the guest has not written a complete one.
    pub fn read(disk: &mut File) -> io::Result<Option<GuestResult>> {
        match GuestResult::parse(disk) {
            Ok(result) => Ok(result),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn parse(disk: &mut File) -> io::Result<Option<GuestResult>> {
        let size = disk.metadata()?.len();
        let mut source = io::BufReader::new(disk);
        let mut bytes = |length: u64| {
            if length > size {
                return Err(io::Error::from(io::ErrorKind::UnexpectedEof));
            }
            let mut bytes = vec![0; length as usize];
            source.read_exact(&mut bytes).map(|()| bytes)
        };
        let number = |bytes: Vec<u8>| u64::from_le_bytes(bytes.try_into().expect("eight bytes"));
        if bytes(8)? != MAGIC {
            return Ok(None);
        }
        let status = number(bytes(8)?) as i32;
        let mut files = Vec::new();
        for _ in 0..number(bytes(8)?) {
            let name = number(bytes(8)?);
            let _name = OsString::from_vec(bytes(name)?);
            let length = number(bytes(8)?);
            files.push(if length == u64::MAX { None } else { Some(bytes(length)?) });
        }
        if bytes(8)? != MAGIC || files.len() < 2 {
            return Ok(None);
        }
        let others = files.split_off(2);
        let mut written = files.into_iter().map(Option::unwrap_or_default);
        let (output, errors) = (written.next().unwrap_or_default(), written.next().unwrap_or_default());
        Ok(Some(GuestResult { status, output, errors, files: others }))
    }
}
