//! Under which heading of `--help` each flag of each verb stands.

use crate::harness::Place;

/// The verbs that a help lists, in its order.
fn verbs(help: &str) -> Vec<String> {
    let section = help.split("\nCommands:\n").nth(1).unwrap_or_default();
    let lines = section.lines().take_while(|line| line.starts_with("  "));
    // two spaces before a verb, more before what goes on about it
    let verbs = lines.filter_map(|line| {
        line[2..].split_whitespace().next().filter(|_| !line.starts_with("   "))
    });
    verbs.filter(|verb| *verb != "help").map(str::to_owned).collect()
}

/// The headings of a help, each with the long flags below it.
fn headings(help: &str) -> Vec<String> {
    let mut headings: Vec<String> = Vec::new();
    for line in help.lines() {
        let text = line.trim_start();
        let depth = line.len() - text.len();
        if depth == 0 && text.ends_with(':') {
            headings.push(format!("  {text}"));
        } else if let Some(heading) = headings.last_mut().filter(|_| depth <= 6)
            && text.starts_with('-')
        {
            let mut words = text.split([' ', ',', '=', '[']);
            heading.push(' ');
            heading.push_str(words.find(|word| word.starts_with("--")).unwrap());
        }
    }
    headings.retain(|heading| heading.contains(" --"));
    headings
}

/// All headings of a verb and of the verbs below it.
fn describe(place: &Place, verb: &str, text: &mut Vec<String>) {
    let help = place.ivoro(&format!("{verb} --help")).good();
    text.push(format!("ivoro {verb}").trim_end().to_owned());
    text.extend(headings(&help));
    for below in verbs(&help) {
        describe(place, format!("{verb} {below}").trim_start(), text);
    }
}

#[test]
#[allow(clippy::too_many_lines, reason = "all but two lines are the snapshot")]
fn every_flag_stands_under_its_heading() {
    let mut text = Vec::new();
    describe(&Place::new(), "", &mut text);
    insta::assert_snapshot!(text.join("\n"), @"
    ivoro
      Options: --threads --help --version
    ivoro learn
      Options: --threads --variant --budget --budget-seconds --classes --class --receipt --help
      Photos: --class-from --keep-duplicates --remember --strict --truncated --verbose --left-out
      Network: --backbone --device --batch --onnx-outputs --onnx-mean --onnx-deviation
      Images: --size --fit
      Features (where the input is a features file): --labels --layers --label-column --feature-column --split-column
      Settings (default: chosen on held-out base-phase samples): --lambda --scale --shift --lengths --ridge --prior --rank --layer-weights --weight-decay --beta --probe-space
      Settings with a fixed default: --probe-views --volume --pairs --rule --gamma --optimiser --iterations --lift --ridge-per --scatter --scatter-rank --seed
    ivoro predict
      Options: --threads --top --reject --no-reject --burst --burst-rule --exact --format --help
      Photos: --strict --truncated --verbose --left-out
      Network: --backbone --device --batch --onnx-outputs --onnx-mean --onnx-deviation
      Images: --size --fit
      Features (where the input is a features file): --labels --layers --label-column --feature-column --split-column
    ivoro evaluate
      Options: --threads --unknown --reject --json --csv --html --show --help
      Photos: --strict --truncated --verbose --left-out
      Network: --backbone --device --batch --onnx-outputs --onnx-mean --onnx-deviation
      Images: --size --fit
      Features (where the input is a features file): --labels --layers --label-column --feature-column --split-column
    ivoro watch
      Options: --once --threads --out --format --sort-into --copy --move --link --burst-seconds --reject --every --help
      Network: --backbone --device --batch --onnx-outputs --onnx-mean --onnx-deviation
      Images: --size --fit
    ivoro serve
      Options: --listen --threads --token-file --new-token --host --allow-origin --tls --tls-certificate --tls-key --read-only --keep-unknowns --max-body --variant --budget --budget-seconds --help
      Settings (default: chosen on held-out base-phase samples): --lambda --scale --shift --lengths --ridge --prior --rank --layer-weights --weight-decay --beta --probe-space
      Settings with a fixed default: --probe-views --volume --pairs --rule --gamma --optimiser --iterations --lift --ridge-per --scatter --scatter-rank --seed
    ivoro update
      Options: --classes --threads --class --receipt --help
      Photos: --class-from --keep-duplicates --remember --strict --truncated --verbose --left-out
      Network: --backbone --device --batch --onnx-outputs --onnx-mean --onnx-deviation
      Images: --size --fit
      Features (where the input is a features file): --labels --layers --label-column --feature-column --split-column
    ivoro retract
      Options: --receipt --threads --classes --from --renamed --drop-probes --inexact --help
      Photos: --class-from --keep-duplicates --remember --strict --truncated --verbose --left-out
      Network: --backbone --device --batch --onnx-outputs --onnx-mean --onnx-deviation
      Images: --size --fit
      Features (where the input is a features file): --labels --layers --label-column --feature-column --split-column
    ivoro relabel
      Options: --threads --to --from --drop-probes --inexact --help
      Photos: --class-from --keep-duplicates --remember --strict --truncated --verbose --left-out
      Network: --backbone --device --batch --onnx-outputs --onnx-mean --onnx-deviation
      Images: --size --fit
      Features (where the input is a features file): --labels --layers --label-column --feature-column --split-column
    ivoro rename
      Options: --threads --help
    ivoro forget
      Options: --drop-probes --threads --receipt --strike-names --help
    ivoro calibrate
      Options: --classes --threads --dry-run --json --help
      Photos: --class-from --keep-duplicates --remember --strict --truncated --verbose --left-out
      Network: --backbone --device --batch --onnx-outputs --onnx-mean --onnx-deviation
      Images: --size --fit
      Features (where the input is a features file): --labels --layers --label-column --feature-column --split-column
    ivoro seal
      Options: --class --threads --rank --bits --out --help
    ivoro merge
      Options: --out --threads --ancestor --settings-of --force --help
    ivoro inspect
      Options: --json --threads --help
    ivoro audit
      Options: --json --threads --help
    ivoro log
      Options: --json --threads --help
    ivoro networks
      Options: --threads --json --help
    ivoro networks add
      Options: --name --threads --licence --mean --deviation --outputs --size --fit --help
    ivoro networks convert
      Options: --out --threads --name --layers --mean --deviation --outputs --size --fit --help
    ivoro variants
      Options: --threads --help
    ivoro demo
      Options: --out --threads --plane --epochs --help
    ivoro run
      Options: --protocol --threads --order --variants --peers --tuned-on-test --tune-on --data-set --network-name --ranpac-dim --out --json --csv --holdout --help
      Features (where the input is a features file): --labels --layers --label-column --feature-column --split-column
      Settings (default: chosen on held-out base-phase samples): --lambda --scale --shift --lengths --ridge --prior --rank --layer-weights --weight-decay --beta --probe-space
      Settings with a fixed default: --probe-views --volume --pairs --rule --gamma --optimiser --iterations --lift --ridge-per --scatter --scatter-rank --seed
      Baselines (where the input is a data set of images): --baselines --phase-epochs --pictures
      Images (where the input is a data set of images): --backbone --onnx-outputs --onnx-mean --onnx-deviation --device --views --extraction-batch --cache
      Images: --size --fit --skip-broken --test-share --split-seed
      Training: --network --embedding --recipe --epochs --batch --rate --validation --training-seed
    ivoro few-shot
      Options: --shots --threads --draws --orders --variants --peers --ranpac-dim --out --json --csv --holdout --help
      Features (where the input is a features file): --labels --layers --label-column --feature-column --split-column
      Settings (default: chosen on held-out base-phase samples): --lambda --scale --shift --lengths --ridge --prior --rank --layer-weights --weight-decay --beta --probe-space
      Settings with a fixed default: --probe-views --volume --pairs --rule --gamma --optimiser --iterations --lift --ridge-per --scatter --scatter-rank --seed
    ivoro reproduce
      Options: --quick --threads --data --grid --backbone --out --cache --device --list --help
      Images: --size --fit --skip-broken
    ivoro train
      Options: --out --threads --protocol --order --device --precision --help
      Images: --size --fit --skip-broken --test-share --split-seed
      Training: --network --embedding --recipe --epochs --batch --rate --validation --training-seed
    ivoro extract
      Options: --out --threads --views --layers --precision --help
      Network: --backbone --device --batch --onnx-outputs --onnx-mean --onnx-deviation
      Images: --size --fit --skip-broken --test-share --split-seed
    ivoro report
      Options: --out --threads --help
    ivoro figure
      Options: --threads --help
    ivoro figure scene
      Options: --samples --threads --variant --protocol --order --data-set --out --holdout --help
      Features (where the input is a features file): --labels --layers --label-column --feature-column --split-column
      Settings (default: chosen on held-out base-phase samples): --lambda --scale --shift --lengths --ridge --prior --rank --layer-weights --weight-decay --beta --probe-space
      Settings with a fixed default: --probe-views --volume --pairs --rule --gamma --optimiser --iterations --lift --ridge-per --scatter --scatter-rank --seed
    ivoro figure tsne
      Options: --samples --threads --perplexity --epochs --variant --protocol --order --data-set --out --holdout --help
      Features (where the input is a features file): --labels --layers --label-column --feature-column --split-column
      Settings (default: chosen on held-out base-phase samples): --lambda --scale --shift --lengths --ridge --prior --rank --layer-weights --weight-decay --beta --probe-space
      Settings with a fixed default: --probe-views --volume --pairs --rule --gamma --optimiser --iterations --lift --ridge-per --scatter --scatter-rank --seed
    ivoro completions
      Options: --threads --help
    ");
}
