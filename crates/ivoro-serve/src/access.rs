//! Who may do what: tokens with rights, stored hashed.

use std::collections::HashMap;
use std::net::IpAddr;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::http::StatusCode;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use serde::Serialize;
use utoipa::ToSchema;

use crate::problem::Problem;
use crate::start_error::StartError;

/// What a token may do. Each right has those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Right {
    /// Ask, and read what is known.
    Ask,
    /// Teach, take back, give other names, forget.
    Teach,
    /// Create, replace, merge, seal and delete models.
    Admin,
}

impl Right {
    fn parse(text: &str) -> Option<Self> {
        match text {
            "ask" => Some(Self::Ask),
            "teach" => Some(Self::Teach),
            "admin" => Some(Self::Admin),
            _ => None,
        }
    }

    /// Its word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Ask => "ask",
            Self::Teach => "teach",
            Self::Admin => "admin",
        }
    }
}

/// Whoever sent a request.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    /// The name of the token.
    pub(crate) name: Arc<str>,
    pub(crate) right: Right,
}

struct Token {
    name: Arc<str>,
    right: Right,
    hash: blake3::Hash,
}

/// The tokens, and who has named wrong ones.
pub(crate) struct Access {
    /// None: whoever reaches this server may do everything.
    tokens: Option<Vec<Token>>,
    wrong: Mutex<HashMap<IpAddr, (Instant, u32)>>,
    most_wrong: u32,
}

/// A token file that is longer is none.
const MOST_FILE: u64 = 1 << 20;
/// Bytes of a token as it is sent, at most.
const MOST_TOKEN: usize = 256;
/// How long wrong tokens count.
const MINUTE: Duration = Duration::from_secs(60);
/// Addresses that are remembered.
const MOST_ADDRESSES: usize = 10_000;

/// What the hash of a token is made for.
const CONTEXT: &str = "ivoro serve, token of a client, version 1";

fn hash_of(token: &str) -> blake3::Hash {
    blake3::Hash::from(blake3::derive_key(CONTEXT, token.as_bytes()))
}

/// A new token, and the line for the token file that knows it by its hash alone.
pub fn new_token(name: &str, right: Right) -> Result<(String, String), StartError> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || "-_.@".contains(c);
    if name.is_empty() || name.len() > 64 || !name.chars().all(is_name) {
        return Err(StartError::TokenName { name: name.to_owned() });
    }
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(|error| StartError::Random { what: error.to_string() })?;
    let token = BASE64.encode(bytes);
    let line = format!("{name} {} {}", right.word(), hash_of(&token).to_hex());
    Ok((token, line))
}

impl Access {
    /// The tokens of a file; without a file everybody is an admin.
    pub(crate) fn open(file: Option<&Path>, most_wrong: u32) -> Result<Self, StartError> {
        let tokens = file.map(read_tokens).transpose()?;
        Ok(Self { tokens, wrong: Mutex::default(), most_wrong })
    }

    /// Whether nobody has to say who he is.
    pub(crate) fn is_open(&self) -> bool {
        self.tokens.is_none()
    }

    /// Who sends this token.
    pub(crate) fn caller(&self, sent: Option<&str>, from: IpAddr) -> Result<Caller, Problem> {
        let Some(tokens) = &self.tokens else {
            return Ok(Caller { name: "local".into(), right: Right::Admin });
        };
        self.check_patience(from)?;
        let unknown = |detail| Problem::new(StatusCode::UNAUTHORIZED, "unauthorized", detail);
        let Some(sent) = sent else {
            return Err(unknown("a token is needed: Authorization: Bearer TOKEN"));
        };
        let found = (sent.len() <= MOST_TOKEN).then(|| hash_of(sent));
        // every token is compared, each in constant time
        let mut caller = None;
        for token in tokens {
            if found == Some(token.hash) {
                caller = Some(Caller { name: Arc::clone(&token.name), right: token.right });
            }
        }
        caller.ok_or_else(|| {
            self.note_wrong(from);
            unknown("this token is not known here")
        })
    }

    fn check_patience(&self, from: IpAddr) -> Result<(), Problem> {
        let wrong = self.wrong.lock().unwrap_or_else(PoisonError::into_inner);
        match wrong.get(&from) {
            Some((since, count)) if *count >= self.most_wrong && since.elapsed() < MINUTE => {
                let left = MINUTE.saturating_sub(since.elapsed()).as_secs() as u32 + 1;
                let detail = "too many wrong tokens from this address";
                Err(Problem::new(StatusCode::TOO_MANY_REQUESTS, "too-many-tokens", detail)
                    .after(left))
            }
            _ => Ok(()),
        }
    }

    fn note_wrong(&self, from: IpAddr) {
        let mut wrong = self.wrong.lock().unwrap_or_else(PoisonError::into_inner);
        if wrong.len() >= MOST_ADDRESSES {
            wrong.retain(|_, (since, _)| since.elapsed() < MINUTE);
        }
        if wrong.len() >= MOST_ADDRESSES && !wrong.contains_key(&from) {
            return;
        }
        let (since, count) = wrong.entry(from).or_insert((Instant::now(), 0));
        if since.elapsed() >= MINUTE {
            (*since, *count) = (Instant::now(), 0);
        }
        *count += 1;
    }
}

fn read_tokens(path: &Path) -> Result<Vec<Token>, StartError> {
    let refuse =
        |line: usize, what: String| StartError::TokenFile { path: path.to_owned(), line, what };
    let bytes = fs_err::metadata(path)?.len();
    if bytes > MOST_FILE {
        return Err(refuse(0, format!("{bytes} bytes, at most {MOST_FILE} are read")));
    }
    let text = fs_err::read_to_string(path)?;
    let mut tokens: Vec<Token> = Vec::new();
    for (at, line) in text.lines().enumerate().map(|(at, line)| (at + 1, line.trim())) {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let words: Vec<&str> = line.split_whitespace().collect();
        let [name, right, hash] = words[..] else {
            // the line itself may hold a secret
            let what = format!("expected NAME RIGHT HASH, found {} words", words.len());
            return Err(refuse(at, what));
        };
        let right = Right::parse(right)
            .ok_or_else(|| refuse(at, "the right is ask, teach or admin".to_owned()))?;
        let hash = blake3::Hash::from_hex(hash)
            .map_err(|_| refuse(at, "the hash has 64 hexadecimal digits".to_owned()))?;
        if tokens.iter().any(|token| *token.name == *name) {
            return Err(refuse(at, format!("the name {name} comes twice")));
        }
        tokens.push(Token { name: name.into(), right, hash });
    }
    if tokens.is_empty() {
        return Err(refuse(
            0,
            "no token in it; `ivoro serve --new-token NAME RIGHT` makes one".to_owned(),
        ));
    }
    Ok(tokens)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

    #[test]
    fn tokens_are_known_by_their_hash_and_wrong_ones_are_counted() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("tokens");
        let (token, line) = new_token("anna", Right::Teach).unwrap();
        assert!(!line.contains(&token));
        std::fs::write(&file, format!("# who\n{line}\n")).unwrap();
        let access = Access::open(Some(&file), 3).unwrap();
        let caller = access.caller(Some(&token), HERE).unwrap();
        assert_eq!((&*caller.name, caller.right), ("anna", Right::Teach));
        assert_eq!(access.caller(None, HERE).unwrap_err().status(), StatusCode::UNAUTHORIZED);
        for _ in 0..3 {
            let refused = access.caller(Some("wrong"), HERE).unwrap_err();
            assert_eq!(refused.status(), StatusCode::UNAUTHORIZED);
        }
        // from now on even the right one is not looked at
        let refused = access.caller(Some(&token), HERE).unwrap_err();
        assert_eq!(refused.status(), StatusCode::TOO_MANY_REQUESTS);
        let elsewhere = IpAddr::from([10, 0, 0, 1]);
        assert!(access.caller(Some(&token), elsewhere).is_ok());
    }

    #[test]
    fn a_broken_token_file_is_refused_without_its_contents() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("tokens");
        for (text, said) in [
            ("", "no token in it"),
            ("anna teach", "found 2 words"),
            ("anna all 00", "the right is ask, teach or admin"),
            ("anna teach hunter2", "64 hexadecimal digits"),
        ] {
            std::fs::write(&file, text).unwrap();
            let error = Access::open(Some(&file), 3).err().unwrap().to_string();
            assert!(error.contains(said) && !error.contains("hunter2"), "{error}");
        }
        assert!(new_token("a b", Right::Ask).is_err());
    }
}
