//! Alpha's error numbers.

/// Host and Alpha numbers where they differ. Numbers below 35 are the same, except EAGAIN and EDEADLK.
#[rustfmt::skip]
pub const ERRORS: &[(i32, i32)] = &[
    (libc::EDEADLK, 11), (libc::EAGAIN, 35), (libc::EINPROGRESS, 36), (libc::EALREADY, 37),
    (libc::ENOTSOCK, 38), (libc::EDESTADDRREQ, 39), (libc::EMSGSIZE, 40), (libc::EPROTOTYPE, 41),
    (libc::ENOPROTOOPT, 42), (libc::EPROTONOSUPPORT, 43), (libc::ESOCKTNOSUPPORT, 44),
    (libc::EOPNOTSUPP, 45), (libc::EPFNOSUPPORT, 46), (libc::EAFNOSUPPORT, 47), (libc::EADDRINUSE, 48),
    (libc::EADDRNOTAVAIL, 49), (libc::ENETDOWN, 50), (libc::ENETUNREACH, 51), (libc::ENETRESET, 52),
    (libc::ECONNABORTED, 53), (libc::ECONNRESET, 54), (libc::ENOBUFS, 55), (libc::EISCONN, 56),
    (libc::ENOTCONN, 57), (libc::ESHUTDOWN, 58), (libc::ETOOMANYREFS, 59), (libc::ETIMEDOUT, 60),
    (libc::ECONNREFUSED, 61), (libc::ELOOP, 62), (libc::ENAMETOOLONG, 63), (libc::EHOSTDOWN, 64),
    (libc::EHOSTUNREACH, 65), (libc::ENOTEMPTY, 66), (libc::EUSERS, 68), (libc::EDQUOT, 69),
    (libc::ESTALE, 70), (libc::EREMOTE, 71), (libc::ENOLCK, 77), (libc::ENOSYS, 78), (libc::ENOMSG, 80),
    (libc::EIDRM, 81), (libc::ENOSR, 82), (libc::ETIME, 83), (libc::EBADMSG, 84), (libc::EPROTO, 85),
    (libc::ENODATA, 86), (libc::ENOSTR, 87), (libc::ECHRNG, 88), (libc::EL2NSYNC, 89), (libc::EL3HLT, 90),
    (libc::EL3RST, 91), (libc::ENOPKG, 92), (libc::ELNRNG, 93), (libc::EUNATCH, 94), (libc::ENOCSI, 95),
    (libc::EL2HLT, 96), (libc::EBADE, 97), (libc::EBADR, 98), (libc::EXFULL, 99), (libc::ENOANO, 100),
    (libc::EBADRQC, 101), (libc::EBADSLT, 102), (libc::EBFONT, 104), (libc::ENONET, 105),
    (libc::ENOLINK, 106), (libc::EADV, 107), (libc::ESRMNT, 108), (libc::ECOMM, 109),
    (libc::EMULTIHOP, 110), (libc::EDOTDOT, 111), (libc::EOVERFLOW, 112), (libc::ENOTUNIQ, 113),
    (libc::EBADFD, 114), (libc::EREMCHG, 115), (libc::EILSEQ, 116), (libc::EUCLEAN, 117),
    (libc::ENOTNAM, 118), (libc::ENAVAIL, 119), (libc::EISNAM, 120), (libc::EREMOTEIO, 121),
    (libc::ELIBACC, 122), (libc::ELIBBAD, 123), (libc::ELIBSCN, 124), (libc::ELIBMAX, 125),
    (libc::ELIBEXEC, 126), (libc::ERESTART, 127), (libc::ESTRPIPE, 128), (libc::ENOMEDIUM, 129),
    (libc::EMEDIUMTYPE, 130), (libc::ECANCELED, 131), (libc::ENOKEY, 132), (libc::EKEYEXPIRED, 133),
    (libc::EKEYREVOKED, 134), (libc::EKEYREJECTED, 135), (libc::EOWNERDEAD, 136),
    (libc::ENOTRECOVERABLE, 137), (libc::ERFKILL, 138), (libc::EHWPOISON, 139),
];
