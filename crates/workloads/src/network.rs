//! The TCP/IP stack of `workloads/network`, and its peer lwIP, as workloads.

use crate::toolchain::USUAL;
use crate::workload::{BuildTarget, EditableSources, Recipe, Script, Source, Workload};

/// A file of the TCP/IP stack.
macro_rules! network_source {
    ($name:literal) => {
        Source::Embedded { name: $name, text: include_str!(concat!("../../../workloads/network/", $name)) }
    };
}

/// A list of files with their contents.
macro_rules! network_sources {
    ($($name:literal),*) => { &[$(network_source!($name)),*] };
}

/// A list of files' names.
macro_rules! names {
    ($($name:literal),*) => { &[$($name),*] };
}

/// Passes the stack's files to another macro, between some before and some after them.
macro_rules! with_stack {
    ($list:ident, [$($before:literal),*], [$($after:literal),*]) => {
        $list![
            $($before,)*
            "checksum.c",
            "uio.c",
            "mbuf.c",
            "mbuf_chain.c",
            "ifnet.c",
            "ether.c",
            "arp.c",
            "ip_input.c",
            "ip_output.c",
            "ip_reassembly.c",
            "icmp.c",
            "pcb.c",
            "udp.c",
            "tcp_ack.c",
            "tcp_data.c",
            "tcp_input.c",
            "tcp_options.c",
            "tcp_output.c",
            "tcp_states.c",
            "tcp_subr.c",
            "tcp_timer.c",
            "sockbuf.c",
            "socket.c",
            "socket_transfer.c",
            "network.c",
            "loopback.c",
            "impairment.c",
            "tap.c",
            "namespace.c",
            "dart.c",
            "dart_adapter.c",
            $($after),*
        ]
    };
}

/// A TCP/IP stack in BSD's structure, with real traffic through a TAP device, which it makes in a network of its own; and as a
/// library that is preloaded into unmodified programs.
pub(crate) const NETWORK: Workload = Workload {
    name: "network",
    title: "A TCP/IP stack, traditional and with adapter buffers",
    sources: with_stack!(
        network_sources,
        [
            "checksum.h",
            "dart.h",
            "driver.h",
            "ether.h",
            "ifnet.h",
            "ip.h",
            "mbuf.h",
            "network.h",
            "pattern.h",
            "pcb.h",
            "socket.h",
            "tcp.h",
            "transfer.h",
            "udp.h",
            "uio.h"
        ],
        ["transfer.c", "host_peer.c", "preload.h", "preload.c", "preload_calls.c", "preload_poll.c"]
    ),
    recipe: Recipe::Compile(&[
        BuildTarget {
            image: "transfer",
            sources: with_stack!(names, [], ["transfer.c", "host_peer.c"]),
            flags: &["-std=gnu11"],
            libraries: &[],
            is_shared: false,
        },
        BuildTarget {
            image: "libnetwork.so",
            sources: with_stack!(names, [], ["preload.c", "preload_calls.c", "preload_poll.c"]),
            flags: &["-std=gnu11", "-fPIC", "-shared"],
            libraries: &[],
            is_shared: false,
        },
    ]),
    program: "transfer",
    unit: "sosend",
    gauges: &[],
    toolchains: USUAL,
};

/// lwIP, from Debian's sources, with the work of [`NETWORK`]'s `transfer`: what the stack's counts are compared with. Debian's library is not
/// used, as its pools are too small for its packets.
pub(crate) const LWIP: Workload = Workload {
    name: "lwip",
    title: "lwIP, the peer of the TCP/IP stack",
    sources: &[
        Source::Debian {
            package: "lwip",
            home: "lwip-2.1.*.zip on https://download.savannah.nongnu.org/releases/lwip/",
        },
        network_source!("driver.h"),
        network_source!("ifnet.h"),
        network_source!("mbuf.h"),
        network_source!("uio.h"),
        network_source!("pattern.h"),
        network_source!("transfer.h"),
        network_source!("host_peer.c"),
        network_source!("namespace.c"),
        network_source!("lwip/arch/cc.h"),
        network_source!("lwip/lwipopts.h"),
        network_source!("lwip/lwip_transfer.c"),
    ],
    recipe: Recipe::Script(Script {
        tools: &[("tar", "tar"), ("xz", "xz-utils")],
        steps: &[
            ("unpacking", "mkdir -p source && tar -xf lwip*.tar.* -C source --strip-components=1"),
            (
                "compiling",
                "{compiler} {flags} \"-ffile-prefix-map=$PWD=.\" -std=gnu11 -o lwip_transfer -Ilwip -I. -Isource/src/include \
                 lwip/lwip_transfer.c host_peer.c namespace.c source/src/core/*.c source/src/core/ipv4/*.c source/src/netif/ethernet.c",
            ),
        ],
        images: &["lwip_transfer"],
        editable: Some(EditableSources { folder: "source", prepared: 1 }),
    }),
    program: "lwip_transfer",
    unit: "tcp_write",
    gauges: &[],
    toolchains: USUAL,
};
