//! What the name of an array says: which part it belongs to, and whether it holds labels.

use std::cmp::Ordering;

use super::ReadOptions;

/// The layer a file means that has only one and does not name it.
pub(super) const LAST: &str = "last";

/// Which samples an array is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Train,
    Test,
    All,
}

/// What an array holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Labels,
    Layer(String),
}

/// `train.labels`, `test.<layer>`, `labels`, `<layer>`: the names of `.features` files.
pub(super) fn own(name: &str) -> (Part, Role) {
    let (part, rest) = match name.split_once('.') {
        Some(("train", rest)) => (Part::Train, rest),
        Some(("test", rest)) => (Part::Test, rest),
        _ => (Part::All, name),
    };
    let role = if rest == "labels" { Role::Labels } else { Role::Layer(rest.to_owned()) };
    (part, role)
}

/// The names above and those that are usual in `NumPy` archives: `X_train`, `y_test`,
/// `train_features`, `X`, `y`, ….
pub(super) fn usual(name: &str) -> (Part, Role) {
    let (part, rest) = part_of(name);
    let role = match rest {
        "labels" | "label" | "y" | "Y" | "targets" | "target" => Role::Labels,
        "X" | "x" | "features" | "embeddings" => Role::Layer(LAST.to_owned()),
        layer => Role::Layer(layer.to_owned()),
    };
    (part, role)
}

/// The part that a name speaks of, and the rest of the name.
fn part_of(name: &str) -> (Part, &str) {
    let strip = |word: &str| {
        let before = name.strip_prefix(word).and_then(|rest| rest.strip_prefix(['.', '_', '/']));
        before.or_else(|| name.strip_suffix(word).and_then(|rest| rest.strip_suffix('_')))
    };
    match (strip("train"), strip("test")) {
        (Some(rest), _) => (Part::Train, rest),
        (None, Some(rest)) => (Part::Test, rest),
        (None, None) => (Part::All, name),
    }
}

/// What an array holds where labels or features were asked for by name, with or without the part
/// that it is of; `None` if others were asked for instead.
pub(super) fn asked_for(
    name: &str,
    (part, role): (Part, Role),
    options: &ReadOptions,
) -> Option<(Part, Role)> {
    let (_, rest) = part_of(name);
    let is = |wanted: &Option<String>| {
        wanted.as_ref().is_some_and(|wanted| wanted == name || wanted == rest)
    };
    if is(&options.label_column) {
        return Some((part, Role::Labels));
    }
    match role {
        Role::Labels if is(&options.feature_column) => Some((part, Role::Layer(rest.to_owned()))),
        Role::Layer(_) if is(&options.feature_column) => Some((part, role)),
        Role::Labels if options.label_column.is_some() => None,
        Role::Layer(_) if options.feature_column.is_some() => None,
        role => Some((part, role)),
    }
}

/// Whether every array that was asked for by name is among those found; else the name.
pub(super) fn missing<'a>(found: &[String], options: &'a ReadOptions) -> Option<&'a str> {
    let wanted = [&options.label_column, &options.feature_column];
    let there = |wanted: &str| found.iter().any(|name| wanted == name || wanted == part_of(name).1);
    wanted.into_iter().flatten().map(String::as_str).find(|wanted| !there(wanted))
}

/// The network's last layer first: `last`, then descending with numbers compared as numbers.
pub(super) fn last_layer_first(left: &str, right: &str) -> Ordering {
    (right == LAST).cmp(&(left == LAST)).then_with(|| natural(right, left))
}

/// Text order in which `block9` comes before `block10`.
fn natural(left: &str, right: &str) -> Ordering {
    let (mut left_rest, mut right_rest) = (left, right);
    while !left_rest.is_empty() && !right_rest.is_empty() {
        let (left_piece, right_piece) = (piece(left_rest), piece(right_rest));
        let order = match (number(left_piece), number(right_piece)) {
            (Some(left), Some(right)) => left.cmp(&right),
            _ => left_piece.cmp(right_piece),
        };
        if order != Ordering::Equal {
            return order;
        }
        left_rest = &left_rest[left_piece.len()..];
        right_rest = &right_rest[right_piece.len()..];
    }
    left_rest.len().cmp(&right_rest.len()).then_with(|| left.cmp(right))
}

/// The longest start of `text` that is all digits or free of digits.
fn piece(text: &str) -> &str {
    let digits = text.starts_with(|c: char| c.is_ascii_digit());
    let end = text.find(|c: char| c.is_ascii_digit() != digits).unwrap_or(text.len());
    &text[..end]
}

/// Digits as something that compares like their value, however many there are.
fn number(piece: &str) -> Option<(usize, &str)> {
    piece.starts_with(|c: char| c.is_ascii_digit()).then(|| {
        let digits = piece.trim_start_matches('0');
        (digits.len(), digits)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layer(name: &str) -> Role {
        Role::Layer(name.to_owned())
    }

    #[test]
    fn own_names() {
        assert_eq!(own("train.labels"), (Part::Train, Role::Labels));
        assert_eq!(own("test.layer4"), (Part::Test, layer("layer4")));
        assert_eq!(own("train.features.norm"), (Part::Train, layer("features.norm")));
        assert_eq!(own("labels"), (Part::All, Role::Labels));
        assert_eq!(own("train_norm"), (Part::All, layer("train_norm")));
    }

    #[test]
    fn usual_names() {
        assert_eq!(usual("X_train"), (Part::Train, layer(LAST)));
        assert_eq!(usual("y_test"), (Part::Test, Role::Labels));
        assert_eq!(usual("train_features"), (Part::Train, layer(LAST)));
        assert_eq!(usual("test_labels"), (Part::Test, Role::Labels));
        assert_eq!(usual("train.layer3"), (Part::Train, layer("layer3")));
        assert_eq!(usual("X"), (Part::All, layer(LAST)));
        assert_eq!(usual("y"), (Part::All, Role::Labels));
        assert_eq!(usual("features"), (Part::All, layer(LAST)));
        assert_eq!(usual("train"), (Part::All, layer("train")));
    }

    #[test]
    fn the_last_layer_comes_first() {
        let mut layers = ["block9", "layer3", "block10", "last", "layer4", "block09", "block"];
        layers.sort_by(|left, right| last_layer_first(left, right));
        assert_eq!(layers, ["last", "layer4", "layer3", "block10", "block9", "block09", "block"]);
    }
}
