//! One anvil: a chain that makes a block for each transaction, and ends with the test.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use serde_json::{Value, json};
use tokio::task::spawn_blocking;
use tonic::codegen::http::Method;
use xtask::root;

use super::abi::unhex;
use super::{Address, Contracts, Word};
use crate::fixtures::hex;
use crate::raw::Raw;

/// It takes some 50 ms on an idle machine.
const READY_WITHIN: Duration = Duration::from_secs(30);

/// A chain of its own.
pub struct Evm {
    /// A shell that kills the EVM when its input ends: when this is dropped, and when this process is gone.
    shell: Child,
    chain: u64,
    url: String,
    http: Raw,
}

/// A plain key, which the EVM keeps and signs with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signer(pub Address);

impl Evm {
    /// Starts a chain with this number.
    ///
    /// # Panics
    /// When it does not start.
    pub async fn start(chain: u64) -> Self {
        spawn_blocking(move || Self::spawn(chain)).await.expect("no panic").expect("anvil starts")
    }

    fn spawn(chain: u64) -> anyhow::Result<Self> {
        let binary = binary()?;
        let mut shell = Command::new("sh")
            .args(["-c", "\"$@\" </dev/null & read -r _; kill -9 $!", "sh"])
            .arg(binary)
            .args(["--port", "0", "--chain-id", &chain.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .context("start a shell")?;
        let stdout = shell.stdout.take().context("it has an output")?;
        let (found, address) = mpsc::channel();
        // Reads on to the end: anvil must be able to write.
        thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                if let Some(address) = line.strip_prefix("Listening on ") {
                    let _ = found.send(address.to_owned());
                }
            }
        });
        let mut evm = Self { shell, chain, url: String::new(), http: Raw::new("") };
        let address = address.recv_timeout(READY_WITHIN).context("anvil opened no port")?;
        evm.url = format!("http://{address}");
        evm.http = Raw::new(&evm.url);
        Ok(evm)
    }

    /// Where it answers.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The number of the chain.
    pub fn chain(&self) -> u64 {
        self.chain
    }

    /// One JSON-RPC call.
    ///
    /// # Panics
    /// When it fails.
    pub async fn rpc(&self, method: &str, params: Value) -> Value {
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string();
        let headers = [("content-type", "application/json")];
        let answer = self.http.send(Method::POST, "/", &headers, body).await.expect("anvil answers");
        let mut answer: Value = serde_json::from_slice(&answer.body).expect("anvil answers with JSON");
        assert!(answer.get("error").is_none(), "{method}: {answer}");
        answer["result"].take()
    }

    /// One of its plain keys; there are 10.
    ///
    /// # Panics
    /// When there are not so many.
    pub async fn signer(&self, index: usize) -> Signer {
        Signer(address(&self.rpc("eth_accounts", json!([])).await[index]))
    }

    /// A signature over a message, as wallets make them (EIP-191).
    ///
    /// # Panics
    /// When the key is not one of this chain's.
    pub async fn sign(&self, signer: Signer, message: &[u8]) -> Vec<u8> {
        bytes(&self.rpc("eth_sign", json!([text(&signer.0), text(message)])).await)
    }

    /// What such a signature is over.
    ///
    /// # Panics
    /// Never: a hash has 32 bytes.
    pub async fn message_hash(&self, message: &[u8]) -> [u8; 32] {
        let prefix = format!("\x19Ethereum Signed Message:\n{}", message.len());
        let hash = self.rpc("web3_sha3", json!([text(&[prefix.as_bytes(), message].concat())])).await;
        bytes(&hash).try_into().expect("32 bytes")
    }

    /// Creates a contract of Wallets.sol.
    pub async fn deploy(&self, contract: &str, arguments: &[Word]) -> Address {
        let receipt = self.transact(None, &Contracts::get().creation(contract, arguments)).await;
        address(&receipt["contractAddress"])
    }

    /// Calls a function for good, in a block of its own.
    pub async fn send(&self, to: &Address, call: &[u8]) {
        self.transact(Some(to), call).await;
    }

    async fn transact(&self, to: Option<&Address>, data: &[u8]) -> Value {
        let mut transaction = json!({ "from": text(&self.signer(0).await.0), "data": text(data) });
        if let Some(to) = to {
            transaction["to"] = text(to).into();
        }
        let hash = self.rpc("eth_sendTransaction", json!([transaction])).await;
        loop {
            let receipt = self.rpc("eth_getTransactionReceipt", json!([hash])).await;
            if receipt.is_null() {
                tokio::time::sleep(Duration::from_millis(5)).await; // its block is on its way
                continue;
            }
            assert_eq!(receipt["status"], "0x1", "the transaction succeeds");
            return receipt;
        }
    }

    /// What a function returns.
    pub async fn view(&self, to: &Address, call: &[u8]) -> Vec<u8> {
        bytes(&self.rpc("eth_call", json!([{ "to": text(to), "data": text(call) }, "latest"])).await)
    }

    /// The number of the newest block.
    pub async fn head(&self) -> u64 {
        number(&self.rpc("eth_blockNumber", json!([])).await)
    }

    /// Makes an empty block so many seconds after the newest, and gives its number.
    pub async fn mine_after(&self, seconds: u64) -> u64 {
        let head = self.rpc("eth_getBlockByNumber", json!(["latest", false])).await;
        let time = number(&head["timestamp"]) + seconds;
        self.rpc("evm_mine", json!([format!("{time:#x}")])).await;
        self.head().await
    }
}

impl Drop for Evm {
    fn drop(&mut self) {
        self.shell.stdin.take();
        let _ = self.shell.wait(); // fails only when it is gone already
    }
}

/// The EVM's binary, out of the npm package that tests/chain/package-lock.json pins.
fn binary() -> anyhow::Result<std::path::PathBuf> {
    let arch = if cfg!(target_arch = "aarch64") { "arm64" } else { "amd64" };
    let os = if cfg!(target_os = "macos") { "darwin" } else { "linux" };
    let path = root().join(format!("tests/chain/node_modules/@foundry-rs/anvil-{os}-{arch}/bin/anvil"));
    ensure!(path.exists(), "anvil is not installed: run scripts/setup --clients");
    Ok(path)
}

fn text(bytes: &[u8]) -> String {
    format!("0x{}", hex(bytes))
}

fn bytes(value: &Value) -> Vec<u8> {
    unhex(value.as_str().expect("a text"))
}

fn address(value: &Value) -> Address {
    bytes(value).try_into().expect("20 bytes")
}

fn number(value: &Value) -> u64 {
    let digits = value.as_str().and_then(|text| text.strip_prefix("0x"));
    digits.and_then(|digits| u64::from_str_radix(digits, 16).ok()).expect("a number")
}
