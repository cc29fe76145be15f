"""Ed25519 keys of a sign-off, as PEM files. The private one never leaves its file."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
    load_pem_public_key,
)
from securesystemslib.signer import CryptoSigner, SSlibKey

from orchestrator.domain.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path


def public_path(private: Path) -> Path:
    """Return where the public half of a key file is kept."""
    return private.with_name(f"{private.name}.pub")


def generate_key(private: Path) -> str:
    """Write a new key pair, the private half readable by its owner alone; return its key id.

    Raises:
        UsageError: If there is a key already, or the folder cannot be written.
    """
    public = public_path(private)
    if private.exists() or public.exists():
        raise UsageError(f"{private} has a key already", remedy="Keys are never overwritten")
    key = Ed25519PrivateKey.generate()
    secret = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    shown = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    try:
        private.parent.mkdir(parents=True, exist_ok=True)
        # Created with its final mode: it is at no instant readable by others.
        handle = os.open(private, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "wb") as file:
            file.write(secret)
        public.write_bytes(shown)
    except OSError as error:
        raise UsageError(f"{private}: {error.strerror or error}") from error
    return SSlibKey.from_crypto(key.public_key()).keyid


def read_signer(private: Path) -> CryptoSigner:
    """Return the signer of a private key file.

    Raises:
        UsageError: If the file is missing or holds no Ed25519 private key.
    """
    try:
        key = load_pem_private_key(private.read_bytes(), password=None)
    except OSError as error:
        remedy = "`fleet signoff keygen` makes one"
        raise UsageError(f"{private}: {error.strerror or error}", remedy=remedy) from error
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise UsageError(f"{private} holds no private key without a password") from error
    if not isinstance(key, Ed25519PrivateKey):
        raise UsageError(f"{private} is no Ed25519 key")
    return CryptoSigner(key, SSlibKey.from_crypto(key.public_key()))


def read_public_key(path: Path) -> SSlibKey:
    """Return a public key.

    Raises:
        UsageError: If the file is missing or holds no Ed25519 public key.
    """
    try:
        key = load_pem_public_key(path.read_bytes())
    except OSError as error:
        remedy = "Name the public key that you trust with --public-key"
        raise UsageError(f"{path}: {error.strerror or error}", remedy=remedy) from error
    except (ValueError, UnsupportedAlgorithm) as error:
        raise UsageError(f"{path} holds no public key") from error
    if not isinstance(key, Ed25519PublicKey):
        raise UsageError(f"{path} is no Ed25519 key")
    return SSlibKey.from_crypto(key)
