/**
 * The sub-protocol of a terminal: that of `kubectl exec` (KEP-4006; constants.go of
 * k8s.io/apimachinery/pkg/util/remotecommand), so that clients of Kubernetes read it. Each frame begins with its channel.
 */
export const TERMINAL_PROTOCOL = 'v5.channel.k8s.io';
export const STDIN = 0;
export const STDOUT = 1;
/** Of a command. A terminal has one output. */
export const STDERR = 2;
/** At the end a metav1.Status: how the shell ended, or why the terminal did. */
export const STATUS = 3;
/** `{"Width": columns, "Height": rows}`. */
export const RESIZE = 4;
/** Of Berth alone. The server asks with an empty frame; the client sends the next token of the person who signed in. */
export const TOKEN = 5;
/** Of Berth alone: how many bytes of output the client has shown, as a decimal number. */
export const SHOWN = 6;
/** The client closes the channel whose number the frame has: the input of a command is over. */
export const CLOSE = 255;
