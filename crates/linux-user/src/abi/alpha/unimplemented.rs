//! Names of the system calls without a row in the table: OSF/1's, and rare ones of Linux.

/// The name of a system call that is not implemented.
pub fn name(number: u64) -> Option<&'static str> {
    NAMES.binary_search_by_key(&number, |(number, _)| *number).ok().map(|index| NAMES[index].1)
}

/// Number and name, ascending.
#[rustfmt::skip]
pub const NAMES: &[(u64, &str)] = &[
    (0, "osf_syscall"), (5, "osf_old_open"), (8, "osf_old_creat"), (11, "osf_execve"),
    (18, "osf_getfsstat"), (21, "osf_mount"), (25, "exec_with_loader"), (26, "ptrace"),
    (27, "osf_nrecvmsg"), (28, "osf_nsendmsg"), (29, "osf_nrecvfrom"), (30, "osf_naccept"),
    (31, "osf_ngetpeername"), (32, "osf_ngetsockname"), (34, "osf_chflags"), (35, "osf_fchflags"),
    (38, "osf_old_stat"), (40, "osf_old_lstat"), (43, "osf_set_program_attributes"), (44, "osf_profil"),
    (46, "osf_old_sigaction"), (49, "osf_getlogin"), (50, "osf_setlogin"), (51, "acct"), (55, "osf_reboot"),
    (56, "osf_revoke"), (62, "osf_old_fstat"), (65, "osf_mremap"), (69, "osf_sbrk"), (70, "osf_sstk"),
    (72, "osf_old_vadvise"), (77, "osf_kmodcall"), (78, "osf_mincore"), (81, "osf_old_getpgrp"),
    (84, "osf_old_wait"), (85, "osf_table"), (107, "osf_plock"), (108, "osf_old_sigvec"),
    (109, "osf_old_sigblock"), (110, "osf_old_sigsetmask"), (112, "osf_sigstack"), (115, "osf_old_vtrace"),
    (122, "osf_settimeofday"), (139, "osf_old_sigreturn"), (140, "osf_adjtime"), (142, "osf_gethostid"),
    (143, "osf_sethostid"), (146, "osf_old_killpg"), (148, "quotactl"), (149, "osf_oldquota"),
    (153, "osf_pid_block"), (154, "osf_pid_unblock"), (157, "osf_sigwaitprim"), (158, "osf_nfssvc"),
    (163, "osf_asynch_daemon"), (164, "osf_getfh"), (169, "osf_exportfs"), (181, "osf_alt_plock"),
    (184, "osf_getmnt"), (187, "osf_alt_sigpending"), (188, "osf_alt_setsid"), (199, "osf_swapon"),
    (213, "osf_mvalid"), (214, "osf_getaddressconf"), (215, "osf_msleep"), (216, "osf_mwakeup"),
    (218, "osf_signal"), (219, "osf_utc_gettime"), (220, "osf_utc_adjtime"), (222, "osf_security"),
    (223, "osf_kloadcall"), (236, "osf_waitid"), (237, "osf_priocntlset"), (238, "osf_sigsendset"),
    (239, "osf_set_speculative"), (240, "osf_msfs_syscall"), (242, "osf_uadmin"), (243, "osf_fuser"),
    (244, "osf_proplist_syscall"), (245, "osf_ntp_adjtime"), (246, "osf_ntp_gettime"),
    (247, "osf_pathconf"), (248, "osf_fpathconf"), (250, "osf_uswitch"), (252, "osf_audcntl"),
    (253, "osf_audgen"), (254, "sysfs"), (255, "osf_subsys_info"), (258, "osf_afs_syscall"), (259, "osf_swapctl"),
    (260, "osf_memcntl"), (261, "osf_fdatasync"), (300, "bdflush"), (301, "sethae"), (303, "old_adjtimex"),
    (304, "swapoff"), (306, "create_module"), (307, "init_module"), (308, "delete_module"),
    (309, "get_kernel_syms"), (311, "reboot"), (313, "uselib"), (319, "_sysctl"), (321, "oldumount"),
    (322, "swapon"), (327, "ustat"), (338, "afs_syscall"), (342, "nfsservctl"), (345, "pciconfig_read"),
    (346, "pciconfig_write"), (347, "query_module"), (373, "dipc"), (374, "pivot_root"),
    (376, "pciconfig_iobase"), (397, "tuxcall"), (406, "lookup_dcookie"), (410, "remap_file_pages"),
    (412, "restart_syscall"), (428, "vserver"), (439, "add_key"), (440, "request_key"), (441, "keyctl"),
    (448, "kexec_load"), (477, "timerfd"), (494, "fanotify_init"), (495, "fanotify_mark"),
    (506, "kcmp"), (507, "finit_module"),
    (514, "seccomp"), (515, "bpf"), (538, "open_tree"), (539, "move_mount"), (540, "fsopen"),
    (541, "fsconfig"), (542, "fsmount"), (543, "fspick"), 
    (552, "mount_setattr"), (553, "quotactl_fd"), (554, "landlock_create_ruleset"),
    (555, "landlock_add_rule"), (556, "landlock_restrict_self"), (558, "process_mrelease"),
];
