//! The mounts behind sections: one hugetlbfs for each, with a reserve of its own.
//!
//! Mounting is the atomic step of a reservation: the kernel sets all pages of the reserve aside, or refuses.

use std::ffi::CString;
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::mount::{MountFlags, UnmountFlags};

use crate::Size;
use crate::error::{Error, Result};
use crate::registry::RegistryEntry;

const MOUNTS: &str = "/proc/self/mounts";

/// A hugetlbfs that is mounted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mount {
    /// Where.
    pub point: PathBuf,
    /// The size of its pages.
    pub page_size: Size,
    /// The most it can hold.
    pub size: Size,
    /// The size that it has reserved.
    pub reserve: Size,
}

impl Mount {
    /// All hugetlbfs mounts with a reserve.
    pub fn all() -> Result<Vec<Mount>> {
        let path = Path::new(MOUNTS);
        let text = fs::read(path).map_err(Error::io("read", path))?;
        Ok(text.split(|&byte| byte == b'\n').filter_map(parse).collect())
    }

    /// The topmost mount at that place.
    pub fn at(point: &Path) -> Result<Option<Mount>> {
        Ok(Mount::all()?.into_iter().rev().find(|mount| mount.point == point))
    }

    /// Whether the mount is what the registry's entry asks for.
    pub fn matches(&self, entry: &RegistryEntry) -> bool {
        self.page_size == entry.page_size && self.size == entry.size && self.reserve == entry.size
    }

    /// The memory that is neither in use nor mapped.
    pub fn free(&self) -> Result<Size> {
        let statistics = rustix::fs::statfs(&self.point).map_err(Error::io("examine", &self.point))?;
        Ok(Size(statistics.f_bfree * self.page_size.bytes()))
    }
}

/// A line of the table of mounts, if it is a hugetlbfs with a reserve.
fn parse(line: &[u8]) -> Option<Mount> {
    let mut fields = line.split(|&byte| byte == b' ').skip(1);
    let (point, kind, options) = (fields.next()?, fields.next()?, fields.next()?);
    if kind != b"hugetlbfs" {
        return None;
    }
    let options = str::from_utf8(options).ok()?;
    let option =
        |name: &str| options.split(',').find_map(|option| option.strip_prefix(name)?.strip_prefix('='));
    let size = |name| option(name).and_then(size_of_option);
    Some(Mount {
        point: unescape(point),
        page_size: size("pagesize")?,
        size: size("size")?,
        reserve: size("min_size")?,
    })
}

/// Sizes as the kernel prints them: `2M`, or a number of bytes, or of KiB.
fn size_of_option(text: &str) -> Option<Size> {
    text.parse::<u64>().ok().map(Size).or_else(|| text.parse().ok())
}

/// The kernel writes spaces and the like as `\040`.
fn unescape(text: &[u8]) -> PathBuf {
    let mut path = Vec::with_capacity(text.len());
    let mut rest = text;
    while let [first, tail @ ..] = rest {
        let octal =
            (*first == b'\\').then(|| tail.get(..3)).flatten().and_then(|digits| str::from_utf8(digits).ok());
        match octal.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) => {
                path.push(byte);
                rest = &tail[3..];
            }
            None => {
                path.push(*first);
                rest = tail;
            }
        }
    }
    PathBuf::from(std::ffi::OsString::from_vec(path))
}

/// The ids of a section's owner, and the permissions of its mount: the user's, or also a group's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner {
    /// The user.
    pub user: u32,
    /// The group.
    pub group: u32,
    /// The permissions.
    pub mode: u32,
}

impl Owner {
    /// The owner by the names in the registry: `user` or `user:group`.
    pub fn find(names: &str) -> Result<Owner> {
        let (user, group) = names.split_once(':').map_or((names, None), |(user, group)| (user, Some(group)));
        let user_id = id(&["id", "-u", "--", user], user, 0)?;
        match group {
            None => Ok(Owner { user: user_id, group: id(&["id", "-g", "--", user], user, 0)?, mode: 0o700 }),
            Some(group) => {
                Ok(Owner { user: user_id, group: id(&["getent", "group", group], group, 2)?, mode: 0o770 })
            }
        }
    }
}

/// A field of what a command prints, which asks all the places where this system keeps users and groups.
fn id(command: &[&str], name: &str, field: usize) -> Result<u32> {
    let outcome = Command::new(command[0])
        .args(&command[1..])
        .output()
        .map_err(Error::io("run", Path::new(command[0])))?;
    let text = String::from_utf8_lossy(&outcome.stdout);
    let unknown = || {
        Error::Request(format!("this system knows no user or group `{name}`: correct the section's owner"))
    };
    text.trim().split(':').nth(field).and_then(|id| id.parse().ok()).ok_or_else(unknown)
}

/// Mounts an entry's reserve.
pub fn mount(entry: &RegistryEntry, owner: Owner, point: &Path) -> Result<()> {
    fs::create_dir_all(point).map_err(Error::io("create", point))?;
    let options = format!(
        "pagesize={},size={},min_size={},uid={},gid={},mode={:o}",
        entry.page_size.bytes(),
        entry.size.bytes(),
        entry.size.bytes(),
        owner.user,
        owner.group,
        owner.mode
    );
    let options = CString::new(options).expect("options are without null");
    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    match rustix::mount::mount("vlm", point, "hugetlbfs", flags, options.as_c_str()) {
        Ok(()) => Ok(()),
        Err(error) => {
            remove_folder(point);
            match error {
                rustix::io::Errno::NOMEM => Err(Error::Memory(format!(
                    "another program took the {} of pages for section `{}` before they were reserved: run `vlm apply` again",
                    entry.size, entry.name
                ))),
                error => Err(Error::io("mount a hugetlbfs at", point)(error)),
            }
        }
    }
}

/// Unmounts a reserve, which gives its pages back to the pool; the error `EBUSY` is the caller's to explain.
pub fn unmount(point: &Path) -> rustix::io::Result<()> {
    rustix::mount::unmount(point, UnmountFlags::empty())?;
    remove_folder(point);
    Ok(())
}

/// An empty folder that stays does no harm.
fn remove_folder(point: &Path) {
    let _ = fs::remove_dir(point);
}

/// A process that has a file of a mount mapped or open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// The process.
    pub process: u32,
    /// Its name.
    pub name: String,
}

/// The processes that have a section mapped, as far as the caller may see them.
pub fn users(point: &Path) -> Vec<User> {
    let prefix = [point.as_os_str().as_bytes(), b"/"].concat();
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let ids = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let mut users: Vec<_> = ids.filter_map(|process| user(process, &prefix)).collect();
    users.sort_by_key(|user| user.process);
    users
}

fn user(process: u32, prefix: &[u8]) -> Option<User> {
    let folder = PathBuf::from(format!("/proc/{process}"));
    let maps = fs::read(folder.join("maps")).ok()?;
    let path_of = |line: &[u8]| line.iter().position(|&byte| byte == b'/').map(|at| line[at..].to_vec());
    maps.split(|&byte| byte == b'\n')
        .find(|line| path_of(line).is_some_and(|path| path.starts_with(prefix)))?;
    let name = fs::read_to_string(folder.join("comm")).ok()?.trim().to_owned();
    Some(User { process, name })
}

/// Who uses the section, as a refusal.
pub(crate) fn in_use(name: &str, point: &Path) -> Error {
    let users = users(point);
    let named: Vec<_> =
        users.iter().take(5).map(|user| format!("{} ({})", user.name, user.process)).collect();
    let more = if users.len() > 5 { format!(" and {} more", users.len() - 5) } else { String::new() };
    let who = if named.is_empty() { "a program".to_owned() } else { named.join(", ") + &more };
    Error::State(format!("section `{name}` is in use by {who}: end what uses it first"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mounts_are_read_as_the_kernel_writes_them() {
        let line = br"vlm /run/vlm/or\040ders hugetlbfs rw,nosuid,pagesize=2M,uid=5,mode=700,size=67108864,min_size=64M 0 0";
        let mount = parse(line).unwrap();
        assert_eq!(mount.point, Path::new("/run/vlm/or ders"));
        assert_eq!(
            (mount.page_size, mount.size, mount.reserve),
            (Size::mib(2), Size::mib(64), Size::mib(64))
        );
        for line in
            [&b""[..], b"a b", b"x /y hugetlbfs rw,pagesize=2M 0 0", b"x /y tmpfs rw,size=5 0 0", br"a \0"]
        {
            assert_eq!(parse(line), None);
        }
    }

    #[test]
    fn owners_are_found_by_name() {
        assert_eq!(Owner::find("root").unwrap(), Owner { user: 0, group: 0, mode: 0o700 });
        assert_eq!(Owner::find("root:root").unwrap().mode, 0o770);
        for names in ["no-such-user", "root:no-such-group", "", ":", "-u"] {
            let message = Owner::find(names).unwrap_err().to_string();
            assert!(message.contains("knows no user or group"), "{message}");
        }
    }
}
