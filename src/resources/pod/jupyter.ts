/** Port of the Jupyter server, as clients of the field expect it. */
export const JUPYTER_PORT = 8080;
/** On the loopback of a Jupyter instance an HTTP server that has the token at /token, so that no object has to hold it. */
export const JUPYTER_TOKEN_PORT = 44_188;
/** The servers that an image may have, the best first. */
export const JUPYTER_PROGRAMS = ['jupyter-lab', 'jupyter-notebook', 'jupyter-server'] as const;
/** Reason of the condition Jupyter when there is none to start. */
export const JUPYTER_MISSING = 'NotInImage';
