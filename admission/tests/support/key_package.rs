//! Key packages built by hand, every field free and the signatures right all the same.

use ed25519_dalek::{Signer, SigningKey};

/// What a key package says. The default is valid from 1,000 up to 2,000 seconds.
#[derive(Clone, Debug)]
pub(crate) struct Package {
    pub(crate) version: u16,
    pub(crate) cipher_suite: u16,
    pub(crate) init_key: Vec<u8>,
    pub(crate) encryption_key: Vec<u8>,
    pub(crate) signature_key: Vec<u8>,
    pub(crate) credential: (u16, Vec<u8>),
    /// Versions, cipher suites, extensions, proposals, credentials.
    pub(crate) capabilities: [Vec<u16>; 5],
    pub(crate) source: Source,
    pub(crate) leaf_extensions: Vec<(u16, Vec<u8>)>,
    pub(crate) extensions: Vec<(u16, Vec<u8>)>,
    /// Who signs the leaf, and who signs the package.
    pub(crate) signers: [SigningKey; 2],
}

/// What the leaf node says it was made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    KeyPackage { not_before: u64, not_after: u64 },
    Update,
    Commit,
}

impl Package {
    /// The package of an installation, with no extensions.
    pub(crate) fn by(signer: &SigningKey) -> Self {
        Self {
            version: 1,
            cipher_suite: 3,
            init_key: vec![1; 32],
            encryption_key: vec![2; 32],
            signature_key: signer.verifying_key().to_bytes().to_vec(),
            credential: (1, Vec::new()),
            capabilities: [vec![1], vec![3], vec![], vec![], vec![1]],
            source: Source::KeyPackage { not_before: 1_000, not_after: 2_000 },
            leaf_extensions: Vec::new(),
            extensions: Vec::new(),
            signers: [signer.clone(), signer.clone()],
        }
    }

    /// The same with other fields.
    pub(crate) fn with(&self, change: impl FnOnce(&mut Self)) -> Self {
        let mut changed = self.clone();
        change(&mut changed);
        changed
    }

    /// The bytes, signed.
    pub(crate) fn build(&self) -> Vec<u8> {
        let [leaf_signer, package_signer] = &self.signers;
        let mut leaf = [vector(&self.encryption_key), vector(&self.signature_key)].concat();
        leaf.extend(self.credential.0.to_be_bytes());
        leaf.extend(vector(&self.credential.1));
        for numbers in &self.capabilities {
            leaf.extend(vector(&numbers.iter().flat_map(|number| number.to_be_bytes()).collect::<Vec<_>>()));
        }
        match self.source {
            Source::KeyPackage { not_before, not_after } => {
                leaf.push(1);
                leaf.extend(not_before.to_be_bytes());
                leaf.extend(not_after.to_be_bytes());
            }
            Source::Update => leaf.push(2),
            Source::Commit => leaf.extend([3, 0]),
        }
        leaf.extend(extensions(&self.leaf_extensions));
        let leaf_signature = sign(leaf_signer, "LeafNodeTBS", &leaf);

        let mut package = [self.version.to_be_bytes(), self.cipher_suite.to_be_bytes()].concat();
        package.extend(vector(&self.init_key));
        package.extend(leaf);
        package.extend(leaf_signature);
        package.extend(extensions(&self.extensions));
        let signature = sign(package_signer, "KeyPackageTBS", &package);
        package.extend(signature);
        package
    }
}

/// `opaque field<V>`.
pub(crate) fn vector(content: &[u8]) -> Vec<u8> {
    let len = u32::try_from(content.len()).expect("a short vector");
    let len = match len {
        0..0x40 => len.to_be_bytes()[3..].to_vec(),
        0x40..0x4000 => (len | 0x4000).to_be_bytes()[2..].to_vec(),
        _ => (len | 0x8000_0000).to_be_bytes().to_vec(),
    };
    [&len, content].concat()
}

fn extensions(extensions: &[(u16, Vec<u8>)]) -> Vec<u8> {
    let each = |(kind, data): &(u16, Vec<u8>)| [&kind.to_be_bytes(), &vector(data)[..]].concat();
    vector(&extensions.iter().flat_map(each).collect::<Vec<_>>())
}

/// `SignWithLabel` of RFC 9420, and the vector that the signature stands in.
fn sign(signer: &SigningKey, label: &str, content: &[u8]) -> Vec<u8> {
    let label = format!("MLS 1.0 {label}");
    let message = [vector(label.as_bytes()), vector(content)].concat();
    vector(&signer.sign(&message).to_bytes())
}
