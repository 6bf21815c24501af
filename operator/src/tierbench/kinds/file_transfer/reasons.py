"""The reasons that only file transfers have, for the reference.

The first sentence of a text is the meaning, the others say what to do.
"""

from typing import Final

from tierbench.kinds.registry import Reasons

REASONS: Final = Reasons(
    failures={
        "AttemptsExhausted": "A transfer used all `retry.attempts`. The message has the last cause: check the network "
        "and the server's log.",
        "CacheStateFailed": "The agent could not bring a file into the requested cache state. The message has the "
        "error.",
        "CertificateRefused": "The client does not trust the server's certificate. Check that no one replaced the "
        "Secret of the benchmark.",
        "EngineFailed": "wget or curl ended with an error that it does not retry. The message has its last line.",
        "FileNotFound": "The file is not in the server's folder. Check that nothing deletes files from `storage`.",
        "ForeignFile": "A file that tierbench did not create is in its folder. Delete it, or choose another "
        "`storage.hostPath.path`.",
        "InsufficientStorage": "The node's disk has too little room for the files that are served and received. Use "
        "smaller sizes or a lower `concurrency`, free space, or choose another `storage`.",
        "InvalidURL": "Client and operator are of different versions. Use images of one version.",
        "NoDigest": "The server offers no SHA-256 of the file. Read the log of the preparation.",
        "NotFound": "The server does not have the file. Read the log of the preparation.",
        "NotStored": "The client could not look at the file that it has uploaded. Read the server's log.",
        "ProgramMissing": "The image of the client lacks wget or curl. Use images of one release.",
        "RequestRefused": "The server refuses the request. The message has the HTTP status.",
        "TLSFailed": "The TLS handshake with the server failed. The message has the error: read the server's log.",
        "UserNotNamed": "`storage.hostPath` needs a user id, and `workloads.runAsUser` is null. Choose another "
        "`storage`, or set the value of the chart.",
        "WrongDigest": "The server has stored another content than was sent. Check the node's disk and memory.",
        "WrongLength": "The file on the server has another size. Check that nothing changes files in `storage`.",
    },
    invalid={
        "CacheNotCold": "The file was still in the page cache, although `cacheState` is Cold. Look for other readers.",
        "CacheNotWarm": "The file was not in the page cache, although memory could hold it. Look for other load.",
    },
    facts={
        "CacheCannotHold": "The file is larger than the page cache of the server's node, so it cannot be warm.",
        "IOBound": "Most of the file came from the disk, and the node waited for it.",
    },
    unreachable=frozenset({"AttemptsExhausted"}),
)
