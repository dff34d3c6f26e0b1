//! What may happen, and what must hold after it.

use stateright::{Model, Property};

use super::session::{Output, Session};
use super::{Action, Broken, Frame, KEEPALIVE, PONG_WAIT, SECOND_LOOK, Setting, Status, World};

impl World {
    fn start() -> Self {
        Self {
            session: Session::new(),
            unread: Vec::new(),
            unread_for: 0,
            pongs: Vec::new(),
            pongs_waited: false,
            sent_in_tick: 0,
            vanished_for: None,
            ended: None,
            broken: None,
        }
    }

    fn lives(&self) -> bool {
        self.vanished_for.is_none()
    }

    /// Whether 10 s may pass: what must be done before is done.
    fn may_tick(&self, setting: Setting) -> bool {
        let alarm_is_due = self.session.alarm == 0;
        let pongs_are_due = self.pongs_waited && !self.pongs.is_empty();
        // A Pong waits for a tick in the inbox, so a client that takes less than the rest of the wait is in time.
        let patience = if setting.slow { PONG_WAIT - 1 } else { 0 };
        let reading_is_due = self.lives() && !self.unread.is_empty() && self.unread_for >= patience;
        !alarm_is_due && !pongs_are_due && !reading_is_due
    }

    fn tick(&mut self) {
        // All that is due has been done. So whatever should have been sent by now is late.
        if self.session.idle >= KEEPALIVE && self.session.ping.is_none() {
            self.broken = Some(Broken::KeepaliveLate);
        }
        self.session.tick();
        self.sent_in_tick = 0;
        self.pongs_waited = !self.pongs.is_empty();
        self.unread_for = if self.unread.is_empty() { 0 } else { self.unread_for + 1 };
        if let Some(ticks) = &mut self.vanished_for {
            *ticks += 1;
            if *ticks > KEEPALIVE + PONG_WAIT + SECOND_LOOK {
                self.broken = Some(Broken::DeadClientUnnoticed);
            }
        }
    }

    fn read(&mut self) {
        if let Frame::Ping(nonce) = self.unread.remove(0) {
            self.pongs.push(nonce);
        }
        if self.unread.is_empty() {
            self.unread_for = 0;
        }
    }

    fn vanish(&mut self) {
        self.vanished_for = Some(0);
        self.unread.clear();
        self.unread_for = 0;
    }

    fn session_event(&mut self, setting: Setting, event: impl FnOnce(&mut Session, &mut Output)) {
        let mut output = Output::default();
        event(&mut self.session, &mut output);
        if self.lives() {
            self.unread.extend(output.frames);
        }
        self.ended = output.end;
        if output.two_pings {
            self.broken = Some(Broken::TwoPings);
        }
        self.broken = self.broken.or(self.judge(setting));
    }

    /// What an event of the session must leave behind.
    fn judge(&self, setting: Setting) -> Option<Broken> {
        let unread = self.unread.iter().filter(|frame| **frame == Frame::Data).count();
        let all_read = self.unread.is_empty() && self.pongs.is_empty();
        match self.ended {
            Some(Status::DeadlineExceeded) if self.lives() => Some(Broken::LiveClientFailed),
            Some(Status::ResourceExhausted) if self.lives() && all_read => Some(Broken::ReadingClientFailed),
            None if unread > usize::from(setting.bound) => Some(Broken::OutputUnbounded),
            None if self.session.unacked >= setting.ping_at && self.session.ping.is_none() => {
                Some(Broken::OutputStuck)
            }
            _ => None,
        }
    }
}

impl Model for Setting {
    type State = World;
    type Action = Action;

    fn init_states(&self) -> Vec<World> {
        vec![World::start()]
    }

    fn actions(&self, world: &World, actions: &mut Vec<Action>) {
        if world.ended.is_some() || world.broken.is_some() {
            return;
        }
        let possible = [
            (world.may_tick(*self), Action::Tick),
            (world.sent_in_tick < self.rate, Action::Send),
            (!world.unread.is_empty(), Action::Read),
            (!world.pongs.is_empty(), Action::Pong),
            (world.session.alarm == 0, Action::Alarm),
            (world.lives(), Action::Vanish),
        ];
        actions.extend(possible.into_iter().filter_map(|(possible, action)| possible.then_some(action)));
    }

    fn next_state(&self, last: &World, action: Action) -> Option<World> {
        let mut next = last.clone();
        match action {
            Action::Tick => next.tick(),
            Action::Send => {
                next.sent_in_tick += 1;
                next.session_event(*self, |session, output| session.send(*self, output));
            }
            Action::Read => next.read(),
            Action::Pong => {
                let nonce = next.pongs.remove(0);
                next.pongs_waited = false;
                next.vanished_for = next.vanished_for.map(|_| 0);
                next.session_event(*self, |session, output| session.pong(*self, nonce, output));
            }
            Action::Alarm => next.session_event(*self, |session, output| session.alarm(*self, output)),
            Action::Vanish => next.vanish(),
        }
        Some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![Property::always("nothing breaks", |_, world: &World| world.broken.is_none())]
    }
}
