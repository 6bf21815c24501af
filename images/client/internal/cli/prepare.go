//go:build linux

package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"tierbench.io/client/internal/contract"
	"tierbench.io/client/internal/prepare"
)

func prepareCommand() *cobra.Command {
	var sizes, owner, marker, terminationLog string
	options := prepare.Options{Progress: os.Stdout}
	command := &cobra.Command{
		Use:   "prepare --sizes BYTES,…",
		Short: "Write files of random content, SIZE.bin, and their digests, unless they are there, and make room for uploads",
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			return explain(runPrepare(command.Context(), options, sizes, owner, marker), terminationLog)
		},
	}
	set := command.Flags()
	set.StringVar(&options.Directory, "directory", "/data", "where the files go, into a folder "+prepare.Folder)
	set.StringVar(&sizes, "sizes", "", "sizes in bytes, with commas between")
	set.Int64Var(&options.Receive, "receive-bytes", 0, "bytes that uploads may need, in a folder of their own; 0 for none")
	set.StringVar(&owner, "owner", "", "UID:GID of the files; required for root, and refused for other users")
	set.Int64Var(&options.Reserve, "reserve-bytes", -1, "space to leave free (15% of the file system and 1 GiB)")
	set.Int64Var(&options.Most, "most-bytes", 0, "bytes that all files may have; 0 for no limit")
	set.StringVar(&marker, "hold", "", "keep no other files, create this FILE when all are there, and remove them on SIGTERM")
	set.StringVar(&terminationLog, "termination-log", "", "file for the reason of a failure")
	command.MarkFlagsOneRequired("sizes", "receive-bytes")
	return command
}

func runPrepare(ctx context.Context, options prepare.Options, sizes, owner, marker string) error {
	var err error
	if options.Sizes, err = parseSizes(sizes); err != nil {
		return err
	}
	if options.UID, options.GID, err = parseOwner(owner); err != nil {
		return err
	}
	if marker != "" {
		return prepare.Hold(ctx, options, marker)
	}
	return prepare.Run(ctx, options)
}

func preparedCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "prepared FILE",
		Short: "End with 0 if there is the FILE that prepare --hold creates",
		Args:  cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, arguments []string) error {
			_, err := os.Stat(arguments[0])
			return err
		},
	}
}

// explain writes the reason of a failure to the termination message.
func explain(err error, terminationLog string) error {
	if err == nil {
		return nil
	}
	var failure *contract.Failure
	switch {
	case errors.Is(err, context.Canceled):
		failure = &contract.Failure{Reason: "Interrupted", Message: "the preparation received a signal to terminate"}
		return errors.Join(err, contract.WriteTermination(terminationLog, failure))
	case !errors.As(err, &failure):
		failure = &contract.Failure{Reason: "PreparationFailed", Message: err.Error()}
	}
	return errors.Join(failure, contract.WriteTermination(terminationLog, failure))
}

func parseSizes(text string) ([]int64, error) {
	var sizes []int64
	if text == "" {
		return nil, nil
	}
	for _, word := range strings.Split(text, ",") {
		size, err := strconv.ParseInt(strings.TrimSpace(word), 10, 64)
		if err != nil || size < 1 {
			return nil, fmt.Errorf("--sizes is %q: write bytes with commas between, as in 1048576,536870912", text)
		}
		sizes = append(sizes, size)
	}
	return sizes, nil
}

func parseOwner(text string) (uid, gid int, err error) {
	if text == "" {
		return currentUser()
	}
	user, group, _ := strings.Cut(text, ":")
	uid, userErr := strconv.Atoi(user)
	gid, groupErr := strconv.Atoi(group)
	if userErr != nil || groupErr != nil {
		return 0, 0, fmt.Errorf("--owner is %q: write UID:GID, as in 65530:65530", text)
	}
	return uid, gid, nil
}

// currentUser returns the owner of the files if none is named. It refuses files of root, because the kernel reports resident
// pages only to the owner.
func currentUser() (uid, gid int, err error) {
	if os.Geteuid() != 0 {
		return os.Geteuid(), os.Getegid(), nil
	}
	return 0, 0, &contract.Failure{Reason: "UserNotNamed", Message: "files of the node have to be given to the user that serves them, " +
		"and workloads.runAsUser, a value of the chart, names none: have one named there, or choose another spec.storage"}
}
