/** Port of the Jupyter server, where common clients expect it. */
export const JUPYTER_PORT = 8080;
/** Port on the loopback of a Jupyter instance that serves the token at /token: no object of the cluster holds it. */
export const JUPYTER_TOKEN_PORT = 44_188;
/** The Jupyter servers that an image may have, the best first. */
export const JUPYTER_PROGRAMS = ['jupyter-lab', 'jupyter-notebook', 'jupyter-server'] as const;
/** How the lines of Jupyter begin in the log of the container, where those of the start script are too. */
export const JUPYTER_LINE = '[jupyter] ';
/** Reason of the condition Jupyter when the image has no Jupyter server. */
export const JUPYTER_MISSING = 'NotInImage';
