/** The folder of programs and of what they write. */
export const FOLDER = '/workspace';
/** What Berth keeps of a run, below FOLDER. */
const STATE = '.berth-run';
/** Seconds without a copy under way in which files must come, and in which what was written may be fetched. */
const UPLOAD_SECONDS = 600;
const HOLD_SECONDS = 600;
/** Seconds in which a client that fetches nothing may read the end. */
const END_SECONDS = 30;
/** Bytes of the disk that the program cannot fill, for what the run writes after it: its status, and who copies. */
const ROOM_BYTES = 65_536;

/** What a run asks of the client in a line of its log, by which a client that comes back finds it too. */
export type Mark = { asks: 'upload' } | { asks: 'fetch'; status: number };

interface Plan {
  /** Marks the lines that are meant for the client. */
  nonce: string;
  upload: boolean;
  fetch: boolean;
}

/**
 * The program of a run, for `/bin/sh -c` with the words of the user after it. It ends by itself, and the rental with it, when
 * no client comes back: so a laptop that is closed leaves no GPU behind. When others took the place (TERM), the run begins
 * again with what is on the disk, and what it wrote before is its work too. `find -newer` of some images compares whole
 * seconds. The end is said twice: the first time it may follow a line without an end, and of a long one the rest is cut.
 */
export function runScript({ nonce, upload, fetch }: Plan): string {
  const wait = `[ -e ${STATE}/go ] || echo 'berth-run ${nonce} upload'
_berth_t=0
while [ ! -e ${STATE}/go ]; do
  [ $_berth_t -lt ${UPLOAD_SECONDS} ] || { echo 'berth: no files came within ${UPLOAD_SECONDS / 60} minutes' >&2; exit 125; }
  _berth_second
done
`;
  return `cd ${FOLDER} && mkdir -p ${STATE} || exit 125
_berth_second() {
  sleep 1; _berth_t=$((_berth_t + 1))
  { read -r _berth_c <${STATE}/copy && kill -0 $_berth_c; } 2>/dev/null && _berth_t=0
}
rm -f ${STATE}/copy
if [ -e ${STATE}/exit ]; then read -r _berth_s <${STATE}/exit
else
[ -e ${STATE}/room ] || head -c ${ROOM_BYTES} /dev/zero >${STATE}/room 2>/dev/null
${upload ? wait : ''}[ -e ${STATE}/begin ] || { : >${STATE}/begin; sleep 1; }
"$@" & _berth_p=$! _berth_k=
trap '_berth_k=1; kill -TERM $_berth_p 2>/dev/null' TERM
while :; do wait $_berth_p; _berth_s=$?; kill -0 $_berth_p 2>/dev/null || break; done
[ -z "$_berth_k" ] || exit $_berth_s
rm -f ${STATE}/room
echo $_berth_s >${STATE}/exit
fi
rm -f ${STATE}/copy
trap 'exit $_berth_s' TERM
echo 'berth-run ${nonce} exit '$_berth_s
echo 'berth-run ${nonce} exit '$_berth_s
_berth_t=0
while [ $_berth_t -lt ${fetch ? HOLD_SECONDS : END_SECONDS} ]; do _berth_second; done
exit $_berth_s`;
}

/** The nonce of a run, in the command of its instance; undefined for an instance that is none. */
export function nonceOf(command: readonly string[] | null): string | undefined {
  return /^echo 'berth-run ([0-9a-f]{16}) exit '/m.exec(command?.[2] ?? '')?.[1];
}

/** The text of a line that the program wrote, and the mark that may follow it: the program may have ended no line. */
export function readLine(line: string, nonce: string): { text: string; mark: Mark | undefined } {
  const sign = `berth-run ${nonce} `;
  const at = line.lastIndexOf(sign);
  const [, status] = /^exit (\d{1,3})$/.exec(at === -1 ? '' : line.slice(at + sign.length)) ?? [];
  if (status !== undefined) return { text: line.slice(0, at), mark: { asks: 'fetch', status: Number(status) } };
  if (at !== -1 && line.slice(at + sign.length) === 'upload')
    return { text: line.slice(0, at), mark: { asks: 'upload' } };
  return { text: line, mark: undefined };
}

/** A copy says which process it is, and the run waits for that. */
const COPIES = `{ echo $$ >${STATE}/copy; } 2>/dev/null`;
/** Commands in the instance. */
export const UNPACK = `cd ${FOLDER} && { ${COPIES}; tar -xof -; }`;
export const BEGIN = `: >${FOLDER}/${STATE}/go`;
/** The exit status of PACK when there is nothing to fetch, and of WAITS when the run has its files. */
export const NOTHING = 66;
/** The log still has the request when the files have come, and the program may have changed them since. */
export const WAITS = `[ ! -e ${FOLDER}/${STATE}/go ] || exit ${NOTHING}`;
/**
 * Prints an archive of the files that came or changed since the program began. wget, unzip and mv give files older times, so
 * the time of the last change to their inodes counts where find knows it. Where names are ended by NUL, they may have any
 * character. The tar of some small images reads no list. Nothing is written: a program may have ended because the disk is
 * full, and what is not listed is lost with the instance. So too much is brought where the beginning is not known, because
 * the program removed it or the image has no find.
 */
export const PACK = `cd ${FOLDER} || exit
${COPIES}
command -v find >/dev/null || { tar -cf - --exclude=./${STATE} .; exit; }
set -- -newer ${STATE}/begin
find ${STATE}/begin -cnewer ${STATE}/begin >/dev/null 2>&1 && set -- -cnewer ${STATE}/begin
[ -e ${STATE}/begin ] || set --
list() { find . -path ./${STATE} -prune -o '(' -type f -o -type l ')' "$@"; }
list "$@" -print | read -r f || exit ${NOTHING}
if tar -cf /dev/null --null -T - </dev/null 2>/dev/null; then list "$@" -print0 | tar -cf - --null -T -
else list "$@" -print | {
  set --
  while IFS= read -r f; do set -- "$@" "$f"; done
  tar -cf - "$@"
}
fi`;
