module berth.dev/tools

go 1.25.0

require (
	github.com/pkg/sftp v1.13.12
	golang.org/x/sys v0.47.0
)

require (
	github.com/kr/fs v0.1.0 // indirect
	golang.org/x/crypto v0.54.0 // indirect
)
