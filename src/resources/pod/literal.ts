import type { z } from 'zod';
import { withRules } from '../schema.ts';

/**
 * A text as a field of a pod has it in which the kubelet replaces `$(NAME)` and `$$` (k8s.io/kubernetes
 * third_party/forked/golang/expansion): the container gets the text as it was given.
 */
export function literal(text: string): string {
  return text.replaceAll('$', '$$$$');
}

/** Bytes that Linux takes of one argument, or of one variable with its name (MAX_ARG_STRLEN of linux/binfmts.h). */
const LONGEST_STRING = 131_072;
/** `NAME=` and the zero at the end. */
const LONGEST_NAME = 258;
const MOST_BYTES = LONGEST_STRING - LONGEST_NAME;

const NO_ZERO = 'remove the NUL character: no argument and no variable of a program can have one';
const SHORTER = `write at most ${MOST_BYTES} bytes of UTF-8, which is what Linux takes of one argument or variable`;

/** A text that a program gets as an argument or a variable. What Linux cannot carry is refused. */
export function programText(schema: z.ZodString): z.ZodString {
  return withRules(
    schema
      .refine((text) => !text.includes('\0'), NO_ZERO)
      .refine((text) => Buffer.byteLength(text) <= MOST_BYTES, SHORTER),
    { rule: String.raw`!self.contains('\u0000')`, message: NO_ZERO },
    { rule: `bytes(self).size() <= ${MOST_BYTES}`, message: SHORTER },
  );
}
