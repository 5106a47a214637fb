//! Settings of the method: one flag for each of [`TABLE`].

use std::sync::{Arc, LazyLock};

use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Args, Command, Error, FromArgMatches};
use ivoro::ModelOptions;
use ivoro::head::settings::{SettingInfo, SettingRange, Settings, TABLE};
use ivoro::tune::Given;

const CHOSEN: &str = "Settings (default: chosen on held-out base-phase samples)";
const FIXED: &str = "Settings with a fixed default";

/// Settings of the method. What is not given is chosen on held-out base-phase samples.
#[derive(Debug, Default)]
pub(crate) struct SettingArguments {
    settings: Settings,
    given: Given,
    /// Seed of everything random.
    pub(crate) seed: u64,
}

impl SettingArguments {
    pub(crate) fn options(&self) -> ModelOptions {
        let (settings, given) = (self.settings.clone(), self.given.clone());
        ModelOptions { settings, given, tuner: Arc::default() }
    }
}

/// What stands for a setting that is not given.
static DEFAULTS: LazyLock<Vec<String>> =
    LazyLock::new(|| TABLE.iter().map(|info| info.default().to_string()).collect());

fn flag((info, default): (&'static SettingInfo, &'static String)) -> Arg {
    let parse = |text: &str| info.parse(text).map(|_| text.to_owned());
    let words = matches!(info.range, SettingRange::Words(_) | SettingRange::Whole);
    let mut arg = Arg::new(info.name).long(info.name).help(info.help()).value_parser(parse);
    if let Some(symbol) = info.symbol {
        arg = arg.value_name(symbol);
    }
    if info.candidates.is_some() {
        return arg.help_heading(CHOSEN).allow_negative_numbers(!words);
    }
    arg.help_heading(FIXED).default_value(default.as_str()).allow_negative_numbers(!words)
}

impl Args for SettingArguments {
    fn augment_args(command: Command) -> Command {
        command.args(TABLE.iter().zip(DEFAULTS.iter()).map(flag))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for SettingArguments {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let mut found = Self::default();
        found.update_from_arg_matches(matches)?;
        Ok(found)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        for info in &TABLE {
            // a default that was not asked for is left to the settings, and to the base phase
            let asked = matches.value_source(info.name) == Some(ValueSource::CommandLine);
            let Some(text) = matches.get_one::<String>(info.name).filter(|_| asked) else {
                continue;
            };
            info.ask_for((&mut self.settings, &mut self.given), text)
                .map_err(|reason| Error::raw(ErrorKind::ValueValidation, reason))?;
        }
        self.seed = self.settings.seed;
        Ok(())
    }
}
