/** What a client sends, as the test suite of an engine has it, and what of it must reach an engine that speaks chat. */
export interface RequestCase {
  /** Where it was seen: repository, file, and test. */
  source: string;
  from: 'messages' | 'responses';
  body: Record<string, unknown>;
  /** Values in the body for the engine, by their path. */
  sent?: Readonly<Record<string, unknown>>;
  /** Part of the message of a refusal. */
  refused?: string;
}
