//! Carrying out what the machine says, and telling it what came of it.

use std::rc::Rc;

use js_sys::Promise;
use sealog_log::session::{Action, Context, Session as Machine};
use sealog_log::{MILLISECOND, Nanos};
use sealog_proto::internal::{ControlRequest, PullRequest};
use wasm_bindgen_futures::JsFuture;
use worker::console_error;

use super::budget::Budget;
use super::shell::{Output, Shell, attach};
use crate::{CONNECTIONS, clock};

/// A call to a log partition.
#[derive(Debug)]
pub(super) enum Call {
    Control { partition: u32, request: ControlRequest, deadline: Nanos },
    Pull { partition: u32, request: PullRequest, deadline: Nanos },
}

impl Shell {
    pub(super) fn perform(self: &Rc<Self>, budget: &Budget, action: Action) {
        match action {
            Action::Attach(bytes) => {
                if let Output::Socket(socket) = &*self.output.borrow() {
                    attach(socket, &bytes);
                }
            }
            Action::Send(frame) => match &*self.output.borrow() {
                Output::Socket(socket) => socket.send(&frame),
                Output::Body(body) => {
                    let written = body.write(&frame);
                    let length = frame.len() as u64;
                    self.state.wait_until(Rc::clone(self).written(budget.clone(), written, length));
                }
                Output::None => {}
            },
            Action::Control { partition, request, deadline } => {
                self.calls.borrow_mut().push_back(Call::Control { partition, request, deadline });
            }
            Action::Pull { partition, request, deadline } => {
                self.calls.borrow_mut().push_back(Call::Pull { partition, request, deadline });
            }
            Action::Alarm { after } => self.storage.set_alarm(clock::now() + after),
            Action::Wake { after } => {
                let at = clock::now() + after;
                let running = self.wakes_at.get();
                if running == 0 || at < running {
                    self.wakes_at.set(at);
                    self.state.wait_until(Rc::clone(self).wake(budget.clone(), at, after));
                }
            }
            Action::Sync { number } => {
                self.state.wait_until(Rc::clone(self).sync(budget.clone(), number));
            }
            Action::Finish(status) => {
                if let Output::Socket(socket) = &*self.output.borrow() {
                    socket.finish(&status);
                    return;
                }
                if let Output::Body(body) = self.output.replace(Output::None) {
                    body.finish(&status);
                }
            }
            Action::Delete => self.storage.delete(),
            Action::Report(fault) => console_error!("session: {fault}; the stream ends"),
        }
    }

    /// Makes the calls that wait, as many at once as the platform has connections, and as many as the event may make.
    pub(super) fn make_calls(self: &Rc<Self>, budget: &Budget) {
        while self.calling.get() < CONNECTIONS && !self.calls.borrow().is_empty() {
            if !budget.take() {
                // The rest is made by another event. Calls under way go on there, too.
                self.storage.set_alarm(clock::now());
                return;
            }
            let Some(call) = self.calls.borrow_mut().pop_front() else { return };
            self.calling.set(self.calling.get() + 1);
            self.state.wait_until(Rc::clone(self).call(budget.clone(), call));
        }
    }

    async fn call(self: Rc<Self>, budget: Budget, call: Call) {
        let objects = self.objects.as_ref();
        match call {
            Call::Control { partition, request, deadline } => {
                let number = request.number;
                let reply = match objects {
                    Ok(objects) => objects.control(partition, request, deadline).await.ok(),
                    Err(_) => None,
                };
                self.calling.set(self.calling.get() - 1);
                self.told(&budget, |machine, ctx| {
                    machine.control_reply(ctx, partition, number, reply.as_ref())
                });
            }
            Call::Pull { partition, request, deadline } => {
                let number = request.number;
                let reply = match objects {
                    Ok(objects) => objects.pull(partition, request, deadline).await.ok(),
                    Err(_) => None,
                };
                self.calling.set(self.calling.get() - 1);
                self.told(&budget, |machine, ctx| machine.pull_reply(ctx, number, reply));
            }
        }
    }

    async fn written(self: Rc<Self>, budget: Budget, written: Promise, length: u64) {
        let is_read = JsFuture::from(written).await.is_ok();
        if !is_read {
            self.output.replace(Output::None);
        }
        self.told(
            &budget,
            |machine, ctx| {
                if is_read { machine.written(ctx, length) } else { machine.closed(ctx) }
            },
        );
    }

    async fn wake(self: Rc<Self>, budget: Budget, at: Nanos, after: Nanos) {
        clock::sleep(after.max(MILLISECOND)).await;
        if self.wakes_at.get() != at {
            return; // a sooner timer took its place
        }
        self.wakes_at.set(0);
        self.told(&budget, Machine::wake);
    }

    async fn sync(self: Rc<Self>, budget: Budget, number: u64) {
        // When it fails, the platform starts the object anew.
        if self.storage.synced().await {
            self.told(&budget, |machine, ctx| machine.synced(ctx, number));
        }
    }

    /// Tells the machine what came of an action. It is there: it asked for the action.
    fn told(self: &Rc<Self>, budget: &Budget, tell: impl FnOnce(&mut Machine, &Context<'_>) -> Vec<Action>) {
        let _ = self.event(budget, |machine, ctx| ((), tell(machine, ctx)));
    }
}
