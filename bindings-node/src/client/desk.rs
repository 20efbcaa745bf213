//! What the client's thread has for the event loop: results, and what calls a function of the author's.
//!
//! Law: the client's thread waits for nothing here and never enters JavaScript. However much it leaves, the loop is woken
//! once until it has looked.

use super::arrival::News;
use crate::woken::Woken;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::oneshot;

/// Where the answer to a question goes.
pub(super) type Reply = oneshot::Sender<Result<String, String>>;

/// See the module.
pub(super) struct Desk {
    left: Mutex<Vec<(f64, News)>>,
    questions: Mutex<(u32, HashMap<u32, Reply>)>,
    bell: Arc<Woken>,
}

impl Desk {
    /// For the loop that this bell wakes.
    pub(super) fn new(bell: Arc<Woken>) -> Arc<Self> {
        Arc::new(Self { left: Mutex::default(), questions: Mutex::default(), bell })
    }

    /// Leaves news of the call or the question with this number.
    pub(super) fn leave(&self, number: f64, news: News) {
        locked(&self.left).push((number, news));
        self.bell.say();
    }

    /// Takes what was left, in order.
    pub(super) fn take(&self) -> Vec<(f64, News)> {
        // First the bell: what is left from now on rings again.
        self.bell.take();
        std::mem::take(&mut *locked(&self.left))
    }

    /// The number of a question, whose answer goes to `reply`.
    pub(super) fn ask(&self, reply: Reply) -> u32 {
        let mut questions = locked(&self.questions);
        questions.0 = questions.0.wrapping_add(1);
        let number = questions.0;
        questions.1.insert(number, reply);
        number
    }

    /// Where its answer goes, once.
    pub(super) fn reply(&self, question: u32) -> Option<Reply> {
        locked(&self.questions).1.remove(&question)
    }
}

/// Leaves the end of a call, also of one whose task was ended.
pub(super) struct Ending {
    pub(super) desk: Arc<Desk>,
    pub(super) call: f64,
    pub(super) news: Option<News>,
}

impl Drop for Ending {
    fn drop(&mut self) {
        let news = self.news.take().unwrap_or_else(News::cancelled);
        self.desk.leave(self.call, news);
    }
}

/// Withdraws a question from the loop when the server no longer needs the answer.
pub(super) struct Asked {
    pub(super) desk: Arc<Desk>,
    pub(super) question: u32,
}

impl Drop for Asked {
    fn drop(&mut self) {
        if self.desk.reply(self.question).is_some() {
            self.desk.leave(f64::from(self.question), News::Withdrawn);
        }
    }
}

fn locked<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}
