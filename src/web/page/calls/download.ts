import { tenant } from '../state.ts';
import { errorOf, fetchApi } from './call.ts';

/** Puts an answer of the API into a file. A link could not send the token. */
export async function download(path: string, accept: string, file: string): Promise<void> {
  const response = await fetchApi(tenant.value, path, { headers: { accept } });
  if (!response.ok) throw await errorOf(response);
  const link = document.createElement('a');
  link.href = URL.createObjectURL(await response.blob());
  link.download = file;
  link.click();
  URL.revokeObjectURL(link.href);
}
