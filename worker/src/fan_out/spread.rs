//! Questions that belong to several partitions: one call for each partition, and every answer back to its question.

use super::{Call, FanOutError, WIDTH, group};

/// One call per partition, and whose questions each carries.
#[derive(Debug)]
pub(crate) struct Spread<Request> {
    /// In order of the partitions.
    pub(crate) calls: Vec<Call<Request>>,
    /// The places of the questions of each call, in its order.
    places: Vec<Vec<usize>>,
}

impl<Request> Spread<Request> {
    /// `questions` are a partition, a place to know the answer by, and what to ask there; `request` asks one partition
    /// all that is for it.
    pub(crate) fn new<Question>(
        questions: impl Iterator<Item = (u32, usize, Question)>,
        request: impl Fn(Vec<Question>) -> Request,
    ) -> Self {
        let questions = questions.map(|(partition, place, question)| (partition, (place, question)));
        let (calls, places) = group(questions)
            .into_iter()
            .map(|(partition, asked)| {
                let (places, questions): (Vec<_>, Vec<_>) = asked.into_iter().unzip();
                (Call { partition, request: request(questions) }, places)
            })
            .unzip();
        Self { calls, places }
    }

    /// Only as many of the calls as are made at once; the questions of the others are dropped.
    pub(crate) fn first_wave(mut self) -> Self {
        self.calls.truncate(WIDTH);
        self.places.truncate(WIDTH);
        self
    }

    /// Every answer with the place of its question. `replies` are those to the calls, in their order.
    pub(crate) fn answers<Answer>(
        self,
        replies: impl IntoIterator<Item = Vec<Answer>>,
    ) -> Result<Vec<(usize, Answer)>, FanOutError> {
        let mut replies = replies.into_iter();
        let mut answers = Vec::new();
        for places in self.places {
            let reply = replies.next().unwrap_or_default();
            if reply.len() != places.len() {
                return Err(FanOutError::Contradiction);
            }
            answers.extend(places.into_iter().zip(reply));
        }
        Ok(answers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Questions of the places 0 to 249, but for every fiftieth, over `partitions`.
    fn spread(partitions: u32) -> Spread<Vec<u32>> {
        let asked = (0..250).filter(|n| n % 50 != 49);
        Spread::new(asked.map(|n| (n % partitions, n as usize, n)), |questions| questions)
    }

    fn echo(spread: &Spread<Vec<u32>>) -> Vec<Vec<u32>> {
        spread.calls.iter().map(|call| call.request.clone()).collect()
    }

    #[test]
    fn api_270_answers_return_to_their_place_and_each_partition_is_called_once() {
        let spread = spread(4);
        assert_eq!(spread.calls.iter().map(|call| call.partition).collect::<Vec<_>>(), [0, 1, 2, 3]);
        let replies = echo(&spread);
        let answers = spread.answers(replies).unwrap();
        assert_eq!(answers.len(), 245);
        assert!(answers.iter().all(|&(place, answer)| place == answer as usize));
    }

    #[test]
    fn a_reply_with_an_answer_too_few_or_too_many_is_an_error() {
        let broken = |break_it: fn(&mut Vec<Vec<u32>>)| {
            let spread = spread(4);
            let mut replies = echo(&spread);
            break_it(&mut replies);
            spread.answers(replies)
        };
        assert_eq!(broken(|replies| replies[2].truncate(1)), Err(FanOutError::Contradiction));
        assert_eq!(broken(|replies| replies[2].push(0)), Err(FanOutError::Contradiction));
        assert_eq!(broken(|replies| replies.truncate(3)), Err(FanOutError::Contradiction));
    }

    #[test]
    fn the_first_wave_is_answered_alone() {
        let spread = spread(8).first_wave();
        assert_eq!(spread.calls.len(), WIDTH);
        let replies = echo(&spread);
        let asked: usize = replies.iter().map(Vec::len).sum();
        assert_eq!(spread.answers(replies).unwrap().len(), asked);
    }
}
