/** Forms in which readers find different values. Each is written so that some reader takes `large` where others take `tiny`. */
export const FORM_TYPE = 'multipart/form-data; boundary=b';

export const textPart = (name: string, value: string): string =>
  `Content-Disposition: form-data; name="${name}"\r\n\r\n${value}`;

export const formOf = (...parts: readonly string[]): string =>
  [...parts.map((part) => `--b\r\n${part}`), '--b--\r\n'].join('\r\n');

/** What the form is, its Content-Type, and its body. */
export function ambiguousForms(tiny: string, large: string): [name: string, type: string, body: string][] {
  const model = textPart('model', tiny);
  const file = `Content-Disposition: form-data; name="file"; filename="a.wav"\r\n\r\nRIFF`;
  const second = (head: string): string => formOf(model, file, `${head}\r\n\r\n${large}`);
  return [
    ['a second model', FORM_TYPE, formOf(model, file, textPart('model', large))],
    ['a second model without quotes', FORM_TYPE, second('Content-Disposition: form-data; name=model')],
    ['spaces around the equals sign', FORM_TYPE, second('Content-Disposition: form-data; name = "model"')],
    ['an extended name', FORM_TYPE, second("Content-Disposition: form-data; name*=utf-8''model")],
    ['a name in two ways', FORM_TYPE, second('Content-Disposition: form-data; name="x"; name="model"')],
    ['a name in two spellings', FORM_TYPE, second(`Content-Disposition: form-data; name="x"; name*=utf-8''model`)],
    ['an escaped name', FORM_TYPE, second('Content-Disposition: form-data; name="mod\\el"')],
    ['a name in capitals', FORM_TYPE, second('Content-Disposition: form-data; name="Model"')],
    ['a folded header', FORM_TYPE, second('Content-Disposition: form-data;\r\n name="model"')],
    [
      'a header twice',
      FORM_TYPE,
      second('Content-Disposition: form-data; name="x"\r\nContent-Disposition: form-data; name="model"'),
    ],
    ['a space before the colon', FORM_TYPE, second('Content-Disposition : form-data; name="model"')],
    ['line feeds alone', FORM_TYPE, formOf(model, file, `Content-Disposition: form-data; name="model"\n\n${large}`)],
    [
      'a header that is too long',
      FORM_TYPE,
      second(`X: ${'x'.repeat(5000)}\r\nContent-Disposition: form-data; name="model"`),
    ],
    [
      'a model that is a file',
      FORM_TYPE,
      formOf(`Content-Disposition: form-data; name="model"; filename="m"\r\n\r\n${tiny}`, file),
    ],
    ['a charset for all fields', FORM_TYPE, formOf(model, file, textPart('_charset_', 'utf-16'))],
    [
      'an encoded part',
      FORM_TYPE,
      second('Content-Disposition: form-data; name="prompt"\r\nContent-Transfer-Encoding: base64'),
    ],
    ['a preamble', FORM_TYPE, `x\r\n${formOf(model, file)}`],
    [
      'a preamble with another form',
      FORM_TYPE,
      `--c\r\n${textPart('model', large)}\r\n--c--\r\n${formOf(model, file)}`,
    ],
    ['an epilogue', FORM_TYPE, `${formOf(model, file)}--b\r\n${textPart('model', large)}\r\n--b--\r\n`],
    ['spaces behind a boundary', FORM_TYPE, formOf(model, file).replace('--b\r\n', '--b \r\n')],
    ['a boundary of line feeds', FORM_TYPE, formOf(model, file).replaceAll('\r\n', '\n')],
    ['no end', FORM_TYPE, formOf(model, file).replace('--b--\r\n', '')],
    ['two boundaries', `${FORM_TYPE}; boundary=c`, formOf(model, file)],
    ['two boundaries in two spellings', `${FORM_TYPE}; BOUNDARY="c"`, formOf(model, file)],
    ['a boundary with spaces', 'multipart/form-data; boundary="b "', formOf(model, file)],
    ['another type', 'multipart/mixed; boundary=b', formOf(model, file)],
    ['fields in the address', 'application/x-www-form-urlencoded', `model=${large}`],
    ['a stream that is neither', FORM_TYPE, formOf(model, file, textPart('stream', 'maybe'))],
  ];
}
