//! The network of a guest: two interfaces that are connected to each other, each in a namespace of its own, and nothing outside.

use std::str::FromStr;

/// A kind of the guest's two network interfaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NetworkCard {
    /// DEC's 21143: neither checksums nor lists of buffers (scatter-gather).
    Tulip,
    /// Intel's 82540EM. The emulator's checks no received checksums: the kernel sums them.
    E1000,
    /// A paravirtual card. On a hub, QEMU offers none of its offloads.
    Virtio,
    /// No card: a pair of the kernel's virtual interfaces (veth).
    Veth,
}

impl NetworkCard {
    /// All of them.
    pub const ALL: [NetworkCard; 4] =
        [NetworkCard::Tulip, NetworkCard::E1000, NetworkCard::Virtio, NetworkCard::Veth];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            NetworkCard::Tulip => "tulip",
            NetworkCard::E1000 => "e1000",
            NetworkCard::Virtio => "virtio",
            NetworkCard::Veth => "veth",
        }
    }

    /// Whether it can sum checksums and divide large segments.
    pub fn has_offloads(self) -> bool {
        matches!(self, NetworkCard::E1000 | NetworkCard::Veth)
    }

    /// QEMU's name of the device, with its properties; None if the machine has no card.
    fn device(self) -> Option<&'static str> {
        match self {
            // By default it sends from a task of the emulator's main loop, when the host comes to it: a repetition waits for ever.
            NetworkCard::Virtio => Some("virtio-net-pci,tx=timer"),
            NetworkCard::Veth => None,
            card => Some(card.name()),
        }
    }
}

/// The work on packets that cards do in the kernel's place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NetworkOffloads {
    /// None; nor does the kernel merge received segments (GRO).
    None,
    /// Checksums, and lists of buffers (scatter-gather), without which the kernel copies and sums.
    Checksum,
    /// Segmentation of what is sent, too, and the kernel merges received segments.
    Segmentation,
}

impl NetworkOffloads {
    /// All of them, each with the ones before.
    pub const ALL: [NetworkOffloads; 3] =
        [NetworkOffloads::None, NetworkOffloads::Checksum, NetworkOffloads::Segmentation];

    /// The name, which `network.c` knows, too.
    pub fn name(self) -> &'static str {
        match self {
            NetworkOffloads::None => "none",
            NetworkOffloads::Checksum => "checksum",
            NetworkOffloads::Segmentation => "segmentation",
        }
    }
}

/// The network of a guest. The program's interface is `eth0` with the address 10.0.0.1; that of programs in the background is `eth1`
/// with 10.0.0.2, in another namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GuestNetwork {
    /// The interfaces.
    pub card: NetworkCard,
    /// Their offloads; None leaves these to the driver.
    pub offloads: Option<NetworkOffloads>,
}

impl GuestNetwork {
    /// The word of the first process for the kind of interfaces.
    pub(crate) fn kind(self) -> &'static str {
        if self.card.device().is_some() { "card" } else { "veth" }
    }

    /// The emulator's options. `is_repeatable`: packets are part of a recording.
    pub(crate) fn arguments(self, is_repeatable: bool) -> Vec<String> {
        let Some(device) = self.card.device() else { return Vec::new() };
        let mut arguments = Vec::new();
        let mut option = |name: &str, value: String| arguments.extend([name.to_string(), value]);
        for port in 0..2 {
            option("-netdev", format!("hubport,id=port{port},hubid=0"));
            // Nothing starts from the network: the card needs no program of its own.
            option("-device", format!("{device},netdev=port{port},romfile="));
            if is_repeatable {
                option("-object", format!("filter-replay,id=replay{port},netdev=port{port}"));
            }
        }
        arguments
    }
}

impl FromStr for GuestNetwork {
    type Err = String;

    fn from_str(text: &str) -> Result<GuestNetwork, String> {
        let (name, level) = match text.split_once(':') {
            Some((name, level)) => (name, Some(level)),
            None => (text, None),
        };
        let card = NetworkCard::ALL.into_iter().find(|card| card.name() == name).ok_or_else(|| {
            format!("no card is called '{name}': use {}", NetworkCard::ALL.map(NetworkCard::name).join(", "))
        })?;
        let level_called = |level: &str| {
            let names = NetworkOffloads::ALL.map(NetworkOffloads::name).join(", ");
            let found = NetworkOffloads::ALL.into_iter().find(|one| one.name() == level);
            found.ok_or_else(|| format!("'{level}' says nothing of offloads: use {names}"))
        };
        let offloads = level.map(level_called).transpose()?;
        match offloads {
            Some(NetworkOffloads::Checksum | NetworkOffloads::Segmentation) if !card.has_offloads() => {
                Err(format!("{name} has no offloads here: leave them out, or use e1000 or veth"))
            }
            _ => Ok(GuestNetwork { card, offloads }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_are_read_from_text() {
        let network = |card, offloads| Ok(GuestNetwork { card, offloads });
        assert_eq!("tulip".parse(), network(NetworkCard::Tulip, None));
        assert_eq!("virtio:none".parse(), network(NetworkCard::Virtio, Some(NetworkOffloads::None)));
        for level in NetworkOffloads::ALL {
            let text = format!("e1000:{}", level.name());
            assert_eq!(text.parse(), network(NetworkCard::E1000, Some(level)));
        }
        let wrong = |text: &str| GuestNetwork::from_str(text).unwrap_err();
        assert!(wrong("rtl8139").contains("use tulip, e1000, virtio, veth"));
        assert!(wrong("").contains("no card is called ''"));
        assert!(wrong("e1000:").contains("use none, checksum, segmentation"));
        assert!(wrong("tulip:checksum").contains("tulip has no offloads"));
    }

    #[test]
    fn packets_of_cards_are_recorded() {
        let arguments = |text: &str, is_repeatable| {
            GuestNetwork::from_str(text).unwrap().arguments(is_repeatable).join(" ")
        };
        assert_eq!(arguments("veth", true), "");
        let recorded = arguments("virtio", true);
        assert!(recorded.contains("-device virtio-net-pci,tx=timer,netdev=port1,romfile= "), "{recorded}");
        assert!(recorded.ends_with("-object filter-replay,id=replay1,netdev=port1"), "{recorded}");
        assert!(!arguments("tulip", false).contains("replay"));
    }
}
