package main

import (
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// starts runs functions on the main thread. A program with a terminal gets HUP when the thread that started it ends, so
// this thread must be one that lasts (prctl(2), PR_SET_PDEATHSIG).
var starts = make(chan func())

func start(command *exec.Cmd) error {
	result := make(chan error)
	starts <- func() { result <- command.Start() }
	return <-result
}

// program is a process that leads a session of its own.
type program struct {
	pid int
	// Of a terminal, else nil.
	master *os.File
	// Our ends of its stdout and stderr, without a terminal.
	outputs []*os.File
	once    sync.Once
}

func (p *program) resize(columns, rows uint16) {
	if p.master == nil {
		return
	}
	control(p.master, func(fd int) error {
		return unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Col: columns, Row: rows})
	})
}

func (p *program) signal(number syscall.Signal) {
	syscall.Kill(-p.pid, number)
}

func (p *program) abandon() {
	p.once.Do(p.hangUp)
}

// hangUp ends the session: HUP, two seconds later TERM, and then KILL. Programs that were told to outlive it do: those that
// made a session of their own, those that ignore HUP, as under nohup, and those without a terminal that do not write to
// the session. src/ssh/session/signal-script.ts does the same by exec, and says why.
func (p *program) hangUp() {
	defer closeAll(p.outputs...)
	signalAll(p.bound(), syscall.SIGHUP)
	for _, next := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		for range 20 {
			if len(mortal(p.bound())) == 0 {
				return
			}
			time.Sleep(100 * time.Millisecond)
		}
		signalAll(mortal(p.bound()), next)
	}
}

// bound are the processes of the session that end with it.
func (p *program) bound() []int {
	all := members(p.pid)
	if p.master != nil {
		return all
	}
	var streams []os.FileInfo
	for _, output := range p.outputs {
		if info, err := output.Stat(); err == nil {
			streams = append(streams, info)
		}
	}
	return slices.DeleteFunc(all, func(pid int) bool { return !writesTo(pid, streams) })
}

func signalAll(pids []int, number syscall.Signal) {
	for _, pid := range pids {
		syscall.Kill(pid, number)
	}
}

// members are the live processes of a session.
func members(session int) []int {
	var found []int
	files, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		state, of := sessionOf(string(text))
		if of != session || state == "Z" {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file))); err == nil {
			found = append(found, pid)
		}
	}
	return found
}

// writesTo answers whether stdout or stderr of a process is one of the pipes.
func writesTo(pid int, pipes []os.FileInfo) bool {
	for _, descriptor := range []string{"1", "2"} {
		info, err := os.Stat("/proc/" + strconv.Itoa(pid) + "/fd/" + descriptor)
		if err == nil && slices.ContainsFunc(pipes, func(pipe os.FileInfo) bool { return os.SameFile(pipe, info) }) {
			return true
		}
	}
	return false
}

// mortal are those that HUP ends.
func mortal(pids []int) []int {
	var found []int
	for _, pid := range pids {
		text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
		if err == nil && !ignoresHangUp(string(text)) {
			found = append(found, pid)
		}
	}
	return found
}

func control(file *os.File, do func(fd int) error) error {
	raw, err := file.SyscallConn()
	if err != nil {
		return err
	}
	var result error
	if err := raw.Control(func(fd uintptr) { result = do(int(fd)) }); err != nil {
		return err
	}
	return result
}

// openTerminal makes a terminal (pty(7)): the side of this program, and that of the session.
func openTerminal(size *terminal) (master, slave *os.File, err error) {
	master, err = os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, nil, err
	}
	number := 0
	err = control(master, func(fd int) error {
		if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
			return err
		}
		if number, err = unix.IoctlGetInt(fd, unix.TIOCGPTN); err != nil {
			return err
		}
		return unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Col: size.Columns, Row: size.Rows})
	})
	if err == nil {
		slave, err = os.OpenFile("/dev/pts/"+strconv.Itoa(number), os.O_RDWR|unix.O_NOCTTY, 0)
	}
	if err != nil {
		master.Close()
		return nil, nil, err
	}
	return master, slave, nil
}

// ends are the descriptors of a program: those that it gets, and ours.
type ends struct {
	theirs              []*os.File
	input               *os.File
	stdout, stderr      *os.File
	script, terminalEnd *os.File
}

func closeAll(files ...*os.File) {
	for _, file := range files {
		if file != nil {
			file.Close()
		}
	}
}

func (e *ends) close() {
	closeAll(e.theirs...)
	closeAll(e.input, e.stdout, e.stderr, e.script)
}

// pipeFor makes a pipe and puts the program's end into `theirs`.
func (e *ends) pipeFor(theyRead bool) (ours *os.File, err error) {
	reader, writer, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	if theyRead {
		e.theirs = append(e.theirs, reader)
		return writer, nil
	}
	e.theirs = append(e.theirs, writer)
	// A pipe of 64 KiB would let a fast program wait after each read. Not for the user's other processes to feel: the limit
	// is theirs too, so a refusal is no failure.
	control(reader, func(fd int) error {
		_, err := unix.FcntlInt(uintptr(fd), unix.F_SETPIPE_SZ, outputWindow)
		return err
	})
	return reader, nil
}

func openEnds(size *terminal) (e *ends, err error) {
	e = &ends{}
	if size != nil {
		master, slave, err := openTerminal(size)
		if err != nil {
			return nil, err
		}
		e.theirs = []*os.File{slave, slave, slave}
		e.input, e.stdout, e.terminalEnd = master, master, master
	} else {
		if e.input, err = e.pipeFor(true); err == nil {
			if e.stdout, err = e.pipeFor(false); err == nil {
				e.stderr, err = e.pipeFor(false)
			}
		}
	}
	if err == nil {
		e.script, err = e.pipeFor(true)
	}
	if err != nil {
		e.close()
		return nil, err
	}
	return e, nil
}

func statusOf(state *os.ProcessState) uint32 {
	waited := state.Sys().(syscall.WaitStatus)
	if waited.Signaled() {
		// As a shell says it.
		return 128 + uint32(waited.Signal())
	}
	return uint32(waited.ExitStatus())
}

// runProgram runs a program to the end of its output. It returns an error only when nothing was started.
func (c *channel) runProgram(request openRequest) error {
	if len(request.Argv) == 0 {
		return errProtocol
	}
	own, err := openEnds(request.Terminal)
	if err != nil {
		return err
	}
	attributes := &syscall.SysProcAttr{Setsid: true}
	if request.Terminal != nil {
		attributes.Setctty = true
		attributes.Pdeathsig = syscall.SIGHUP
	}
	command := &exec.Cmd{
		Path:        request.Argv[0],
		Args:        request.Argv,
		Stdin:       own.theirs[0],
		Stdout:      own.theirs[1],
		Stderr:      own.theirs[2],
		ExtraFiles:  own.theirs[3:],
		SysProcAttr: attributes,
	}
	if err := start(command); err != nil {
		own.close()
		return err
	}
	closeAll(own.theirs...)
	running := &program{pid: command.Process.Pid, master: own.terminalEnd}
	if request.Terminal == nil {
		running.outputs = []*os.File{own.stdout, own.stderr}
	}
	// Before the gateway hears of the program: a size or a signal that comes then is for it.
	isWanted := c.join(running)
	c.link.send(frameOpened, c.id, binary.BigEndian.AppendUint32(nil, uint32(running.pid)))
	if !isWanted {
		go running.abandon()
	}
	go func() {
		own.script.WriteString(request.Script)
		own.script.Close()
	}()
	go func() {
		c.passInput(own.input)
		// A terminal has one descriptor for both ways, and its input has no end.
		if request.Terminal == nil {
			own.input.Close()
		}
	}()
	var outputs sync.WaitGroup
	outputs.Go(func() { c.passOutput(frameStdout, own.stdout, c.stdout) })
	if own.stderr != nil {
		outputs.Go(func() { c.passOutput(frameStderr, own.stderr, c.stderr) })
	}
	command.Wait()
	outputs.Wait()
	c.link.sendNumber(frameExit, c.id, statusOf(command.ProcessState))
	c.in.end()
	closeAll(own.input, own.stdout, own.stderr)
	return nil
}
