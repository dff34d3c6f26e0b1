// The cheapest envelopes that the backend accepts, and their topics.
import { create, toBinary } from "@bufbuild/protobuf";
import { message } from "./schema.js";

const make = (name, init) => create(message(name), init);

export const randomBytes = (length) => crypto.getRandomValues(new Uint8Array(length));

/** A Welcome to an installation key; by default to a fresh one. */
export function welcome(installationKey = randomBytes(32), data = randomBytes(100)) {
  const v1 = make("WelcomeMessage.V1", { installationKey, data, hpkePublicKey: randomBytes(32), wrapperAlgorithm: 1 });
  const welcomeMessage = make("WelcomeMessage", { version: { case: "v1", value: v1 } });
  return make("ClientEnvelope", { payload: { case: "welcomeMessage", value: welcomeMessage } });
}

/** The topic of the Welcomes to an installation. */
export const welcomeTopic = (installationKey) => make("Topic", { topic: new Uint8Array([1, ...installationKey]) });

/** An entry in the commit log of a group. */
export function commitLogEntry(groupId) {
  const schema = message("PlaintextCommitLogEntry", "xmtp.mls.message_contents");
  const entry = create(schema, { groupId, commitSequenceId: 1n, lastEpochAuthenticator: randomBytes(32), commitResult: 1 });
  const commitLogEntry = make("CommitLogEntry", { serializedCommitLogEntry: toBinary(schema, entry) });
  return make("ClientEnvelope", { payload: { case: "commitLogEntry", value: commitLogEntry } });
}

/** The topic of the commit log of a group. */
export const commitLogTopic = (groupId) => make("Topic", { topic: new Uint8Array([4, ...groupId]) });
