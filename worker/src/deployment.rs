//! What an isolate sets up once and keeps: the settings, the objects, the counters.

use std::{cell::OnceCell, rc::Rc};

use js_sys::{Array, Object};
use sealog_objects::{Objects, StreamSettings};
use wasm_bindgen::JsCast;
use worker::{Env, console_error};

use crate::{
    chain::Verifier,
    config::{Config, ConfigError},
    counters::Counters,
    error::Status,
    store::Store,
};

/// The parts that every service stands on.
#[derive(Debug)]
pub struct Deployment {
    /// The checked settings.
    pub config: Config,
    /// The objects.
    pub store: Store,
    /// The chains.
    pub verifier: Verifier,
    /// What was done so far.
    pub counters: Counters,
}

impl Deployment {
    /// The deployment of this isolate. The settings cannot change while it lives, so an error stays too.
    pub fn get(env: &Env) -> Result<Rc<Self>, Status> {
        thread_local! {
            static DEPLOYMENT: OnceCell<Result<Rc<Deployment>, ConfigError>> = const { OnceCell::new() };
        }
        DEPLOYMENT.with(|cell| {
            let deployment = cell.get_or_init(|| {
                let deployment = Self::read(env);
                if let Err(error) = &deployment {
                    console_error!("sealog does not serve: {error}");
                }
                deployment.map(Rc::new)
            });
            deployment.clone().map_err(Status::from)
        })
    }

    fn read(env: &Env) -> Result<Self, ConfigError> {
        let config = Config::read(settings(env))?;
        let objects = Objects::new(env).map_err(|error| ConfigError::Binding(error.message))?;
        let store = Store::new(objects, config.log_partitions, config.directory_partitions);
        let verifier = Verifier::new(config.chains.clone(), config.chain_timeout);
        Ok(Self { config, store, verifier, counters: Counters::default() })
    }
}

/// What the sessions of this isolate go by.
pub fn stream_settings(env: &Env) -> Result<StreamSettings, String> {
    match Deployment::get(env) {
        Ok(deployment) => Ok(StreamSettings {
            log_partitions: deployment.config.log_partitions,
            limits: deployment.config.streams,
        }),
        Err(status) => Err(status.message.into_owned()),
    }
}

/// The environment's texts, numbers and truth values. Everything else in it is a binding.
fn settings(env: &Env) -> Vec<(String, String)> {
    let entries = Object::entries(env.unchecked_ref());
    entries.iter().filter_map(|entry| setting(entry.unchecked_ref())).collect()
}

fn setting(entry: &Array) -> Option<(String, String)> {
    let value = entry.get(1);
    let text = value
        .as_string()
        .or_else(|| value.as_f64().map(|number| number.to_string()))
        .or_else(|| value.as_bool().map(|truth| truth.to_string()))?;
    Some((entry.get(0).as_string()?, text))
}
