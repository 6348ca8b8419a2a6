import type { Field } from './multipart.ts';
import type { PlainRoute } from '../../wire/model-endpoints.ts';

/** What the gateway reads of a call that it passes on as it is. */
export interface PlainCall {
  route: PlainRoute;
  /** Of a form: its header Content-Type, and where the name of the model is. */
  form?: { contentType: string; model: Field };
}
