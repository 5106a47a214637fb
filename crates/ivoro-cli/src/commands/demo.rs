//! `ivoro demo`: the whole way on the digits that ship, from training to the table.

use std::path::Path;

use anstream::eprintln;

use super::run;
use crate::args::images::DemoArguments;
use crate::args::{Arguments, Command};
use crate::failure::Failure;
use crate::output;

/// A part of MNIST: 500 training and 200 test images of each digit.
const FILES: [(&str, &[u8]); 5] = [
    ("train-images-idx3-ubyte.gz", include_bytes!("../../data/mnist/train-images-idx3-ubyte.gz")),
    ("train-labels-idx1-ubyte.gz", include_bytes!("../../data/mnist/train-labels-idx1-ubyte.gz")),
    ("t10k-images-idx3-ubyte.gz", include_bytes!("../../data/mnist/t10k-images-idx3-ubyte.gz")),
    ("t10k-labels-idx1-ubyte.gz", include_bytes!("../../data/mnist/t10k-labels-idx1-ubyte.gz")),
    ("LICENCE.txt", include_bytes!("../../data/mnist/LICENCE.txt")),
];

const RECIPE: &[u8] = include_bytes!("../../data/mnist-recipe.toml");

/// Digits 0 to 3 first, then 4 to 6, then 7 to 9, from images to the table.
pub(crate) fn demo(arguments: &DemoArguments) -> Result<(), Failure> {
    let images = arguments.out.join("mnist");
    write_images(&images)?;
    write_files(&arguments.out, &[("recipe.toml", RECIPE)])?;
    let words = words(arguments, &images);
    eprintln!("this demonstration is the command\n  ivoro {}\n", words.join(" "));
    let line = std::iter::once("ivoro".to_owned()).chain(words);
    let parsed = Arguments::read(line);
    let Ok(Arguments { command: Command::Run(run_arguments), .. }) = parsed else {
        let folder = arguments.out.display();
        return Err(Failure::Usage(format!("{folder}: no name for a folder here")));
    };
    run::run(&run_arguments.with_defaults())?;
    eprintln!("images, network, features and run.json are in {}", arguments.out.display());
    Ok(())
}

/// Writes the images that come with the program.
pub(super) fn write_images(folder: &Path) -> Result<(), Failure> {
    write_files(folder, &FILES)
}

fn write_files(folder: &Path, files: &[(&str, &[u8])]) -> Result<(), Failure> {
    output::make_folder(folder)?;
    for (name, content) in files {
        ivoro_io::atomic::write_atomically(&folder.join(name), |file| {
            std::io::Write::write_all(file, content)?;
            Ok(())
        })?;
    }
    Ok(())
}

/// The command that the demonstration stands for.
fn words(arguments: &DemoArguments, images: &Path) -> Vec<String> {
    let out = arguments.out.display().to_string();
    let mut words = vec![
        "run".to_owned(),
        images.display().to_string(),
        format!("--out={out}"),
        format!("--cache={out}"),
        format!("--recipe={out}/recipe.toml"),
        format!("--epochs={}", arguments.epochs),
    ];
    let fixed = [
        "--protocol=4,3,3",
        "--order=identity",
        "--network=small",
        "--variants=all",
        "--peers=all",
        "--ranpac-dim=2000",
    ];
    words.extend(fixed.map(str::to_owned));
    if arguments.plane {
        words.push("--embedding=2".to_owned());
    }
    words
}
