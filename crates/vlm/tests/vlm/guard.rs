//! A registry of a test's own; what it reserves is given back however the test ends.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{FlockOperation, flock};
use vlm::{
    Allocation, LockedRegistry, PageTables, Pool, PoolCounts, Registry, RegistryEntry, Reservations, Size,
};

pub const PAGE: Size = Size::mib(2);

/// The machine's pool of 2 MiB pages, for one test at a time.
#[derive(Debug)]
pub struct Guard {
    folder: tempfile::TempDir,
    before: PoolCounts,
    /// Whether the test itself changed the pool.
    is_pool_set: AtomicBool,
    _lock: File,
}

/// A guard, or the end of the test with the reason.
macro_rules! guard_or_skip {
    () => {
        match crate::guard::Guard::new() {
            Ok(guard) => guard,
            Err(reason) => {
                eprintln!("skipped: {reason}");
                return;
            }
        }
    };
}
pub(crate) use guard_or_skip;

impl Guard {
    pub fn new() -> Result<Guard, String> {
        if !rustix::process::geteuid().is_root() {
            return Err("reserving huge pages needs root's rights".to_owned());
        }
        let pool = Pool::open(PAGE, None).map_err(|error| error.to_string())?;
        let lock =
            File::create(std::env::temp_dir().join("vlm-tests.lock")).map_err(|error| error.to_string())?;
        flock(&lock, FlockOperation::LockExclusive).map_err(|error| error.to_string())?;
        let before = pool.counts().map_err(|error| error.to_string())?;
        if before.overcommit > 0 || before.surplus > 0 {
            return Err("this machine's pool of huge pages has surplus pages".to_owned());
        }
        let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
        fs::set_permissions(folder.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755))
            .map_err(|error| error.to_string())?;
        let guard = Guard { folder, before, is_pool_set: AtomicBool::new(false), _lock: lock };
        let text = format!("mounts = {:?}\nminimum_free = \"256 MiB\"\n", guard.mounts());
        fs::write(guard.registry_path(), text).map_err(|error| error.to_string())?;
        guard.add("probe", PAGE, Allocation::Fluid);
        let outcome = guard.vlm(&["apply"]);
        if !outcome.status.success() {
            return Err(format!(
                "this machine reserves no huge pages: {}",
                String::from_utf8_lossy(&outcome.stderr)
            ));
        }
        guard.said(&["free", "probe"]);
        guard.said(&["remove", "probe"]);
        Ok(guard)
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub fn mounts(&self) -> PathBuf {
        self.folder.path().join("mounts")
    }

    pub fn registry_path(&self) -> PathBuf {
        self.folder.path().join("vlm.toml")
    }

    pub fn registry(&self) -> Registry {
        Registry::load(&self.registry_path()).unwrap()
    }

    pub fn counts(&self) -> PoolCounts {
        Pool::open(PAGE, None).unwrap().counts().unwrap()
    }

    /// The pool as it was before the test.
    pub fn before(&self) -> PoolCounts {
        self.before
    }

    pub fn add(&self, name: &str, size: Size, allocation: Allocation) {
        self.add_entry(RegistryEntry {
            name: name.to_owned(),
            size,
            page_size: PAGE,
            allocation,
            page_tables: PageTables::Shared,
            owner: "root".to_owned(),
            node: None,
        });
    }

    pub fn add_entry(&self, entry: RegistryEntry) {
        let mut locked = LockedRegistry::open(&self.registry_path()).unwrap();
        locked.change(|registry| registry.entries.push(entry)).unwrap();
    }

    /// A registry with one section that is reserved.
    pub fn reserve(&self, name: &str, size: Size, allocation: Allocation) -> Registry {
        self.add(name, size, allocation);
        self.said(&["apply", name]);
        self.registry()
    }

    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_vlm"));
        command.args(arguments).env("VLM_REGISTRY", self.registry_path());
        command
    }

    pub fn vlm(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    /// The output of a command that succeeds.
    pub fn said(&self, arguments: &[&str]) -> String {
        let output = self.vlm(arguments);
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(
            output.status.success(),
            "{arguments:?}: {}\n{text}{}",
            output.status,
            String::from_utf8_lossy(&output.stderr)
        );
        text
    }

    /// The message of a command that fails.
    pub fn refused(&self, arguments: &[&str]) -> String {
        let output = self.vlm(arguments);
        assert_eq!(
            output.status.code(),
            Some(1),
            "{arguments:?}: {}",
            String::from_utf8_lossy(&output.stdout)
        );
        String::from_utf8(output.stderr).unwrap()
    }

    /// Sets a size of the kernel's pool.
    pub fn set(&self, file: &str, pages: u64) {
        self.is_pool_set.store(true, Ordering::Relaxed);
        fs::write(Path::new("/sys/kernel/mm/hugepages/hugepages-2048kB").join(file), pages.to_string())
            .unwrap();
    }

    fn give_back(&self) {
        // Otherwise the commands have kept the pool right, beside others that may use it now.
        let restore = self.is_pool_set.load(Ordering::Relaxed) || std::thread::panicking();
        if restore {
            self.set("nr_overcommit_hugepages", 0);
        }
        let names: Vec<String> = self.registry().entries.into_iter().map(|entry| entry.name).collect();
        for name in names.iter().map(String::as_str).chain(["probe"]) {
            let registry = self.registry();
            let freed = Reservations::lock(&registry).and_then(|reservations| reservations.free(name));
            if let Err(error) = freed {
                eprintln!("{name} stays reserved: {error}");
            }
        }
        if restore {
            self.set("nr_hugepages", self.before.total);
        }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.give_back();
        let after = self.counts();
        let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
        let is_mounted = mounts.contains(self.folder.path().to_str().unwrap());
        if !std::thread::panicking() {
            assert_eq!(after, self.before, "the pool is as it was");
            assert!(!is_mounted, "no mount is left");
        }
    }
}
