//! Finds and reads descriptions, and changes single fields: `bus.bits=64`.

use std::fmt;
use std::str::FromStr;

use descriptions::{DescriptionError, Descriptions, FieldSetting, assignment};

use super::AdapterDescription;

/// The adapters that come with the crate: their names, and their files.
const ADAPTERS: Descriptions = Descriptions { kind: "adapter", files: &KNOWN };

const KNOWN: [(&str, &str); 5] = [
    ("dart", include_str!("../../../../data/adapters/dart.toml")),
    ("dart-simulation", include_str!("../../../../data/adapters/dart-simulation.toml")),
    ("present-day", include_str!("../../../../data/adapters/present-day.toml")),
    ("traditional", include_str!("../../../../data/adapters/traditional.toml")),
    ("witless", include_str!("../../../../data/adapters/witless.toml")),
];

/// The names of the adapters that come with the crate.
pub fn names() -> String {
    ADAPTERS.names()
}

/// A new value of a field: `SECTION.FIELD=VALUE`.
#[derive(Clone, Debug, PartialEq)]
pub struct AdapterSetting(FieldSetting);

impl FromStr for AdapterSetting {
    type Err = String;

    fn from_str(text: &str) -> Result<AdapterSetting, String> {
        let (path, value) = assignment(text).ok_or("give SECTION.FIELD=VALUE, such as bus.bits=64")?;
        Ok(AdapterSetting(FieldSetting::new(&path, value)))
    }
}

impl fmt::Display for AdapterSetting {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl AdapterDescription {
    /// An adapter that comes with the crate, or one in a file.
    ///
    /// ```
    /// let dart = pathlength_adapter::AdapterDescription::find("dart").unwrap();
    /// assert_eq!(dart.dma.read_burst, 512);
    /// ```
    pub fn find(name_or_path: &str) -> Result<AdapterDescription, DescriptionError> {
        AdapterDescription::find_with(name_or_path, &[])
    }

    /// The same adapter with some fields changed, in the order of the settings. Whether the adapter is possible is checked
    /// after all of them.
    ///
    /// ```
    /// use pathlength_adapter::AdapterDescription;
    /// let wide = AdapterDescription::find_with("dart", &["bus.bits=64".parse().unwrap()]).unwrap();
    /// assert_eq!(wide.bus.bits, 64);
    /// let error = AdapterDescription::find_with("dart", &["bus.bits=48".parse().unwrap()]).unwrap_err();
    /// assert_eq!(error.to_string(), "bus.bits: PCI has 32 or 64 bits, not 48");
    /// ```
    pub fn find_with(
        name_or_path: &str,
        settings: &[AdapterSetting],
    ) -> Result<AdapterDescription, DescriptionError> {
        let text = ADAPTERS.text_of(name_or_path)?;
        if settings.is_empty() {
            return AdapterDescription::from_toml(&text);
        }
        let mut description = ADAPTERS.with_base(&text)?;
        for AdapterSetting(setting) in settings {
            setting.apply::<AdapterDescription>(setting.path(), &mut description)?;
        }
        let description: AdapterDescription = description.try_into()?;
        description.check()?;
        Ok(description)
    }

    /// All adapters that come with the crate, by name.
    pub fn all() -> impl Iterator<Item = (&'static str, AdapterDescription)> {
        ADAPTERS.files.iter().map(|&(name, text)| {
            (
                name,
                AdapterDescription::from_toml(text)
                    .expect("a test reads the adapters that come with the crate"),
            )
        })
    }

    /// Reads a description, and checks it. One that says `base = "dart"` changes that adapter.
    pub fn from_toml(text: &str) -> Result<AdapterDescription, DescriptionError> {
        let description: AdapterDescription = ADAPTERS.parse(text)?;
        description.check()?;
        Ok(description)
    }
}
