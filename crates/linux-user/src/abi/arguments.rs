//! The kinds of arguments whose conversion a number in a table selects.

/// The kind of the third argument of an fcntl command.
pub enum FcntlArgument {
    /// A number, or nothing.
    Value,
    /// `O_*` flags to set.
    Flags,
    /// `O_*` flags as the result.
    FlagsOut,
    /// A signal's number to set.
    Signal,
    /// A signal's number as the result.
    SignalOut,
    /// A kind of lock to set.
    LockType,
    /// A kind of lock as the result.
    LockTypeOut,
    /// A `struct flock`; true if the call waits for the lock.
    Lock(bool),
    /// A pointer to this many bytes, with the same layout on both sides.
    Bytes(u64),
}

/// The kind of the third argument of an ioctl request.
pub enum IoctlArgument {
    /// A number, or nothing.
    Value,
    /// A descriptor.
    Descriptor,
    /// A pointer to this many bytes, with the same layout on both sides.
    Bytes(u64),
    /// A termios to return.
    GetTermios,
    /// A termios to set.
    SetTermios,
    /// A `struct ifconf`: a size and a pointer.
    Interfaces,
    /// A `struct tun_filter`: flags, the number of hardware addresses, and these.
    AddressFilter,
    /// A `struct sock_fprog`: a number of instructions, and a pointer to them.
    PacketFilter,
}
