"""Keys and certificates of one control plane, made on the spot and thrown away with it.

Three authorities, because trust differs: `cluster` signs servers and users, `front-proxy` signs the API server as a
proxy of aggregated APIs, `etcd` signs the only client that may touch the store.
"""

import datetime as dt
import ipaddress
from collections.abc import Sequence
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

VALID_FOR = dt.timedelta(days=30)


class Authority:
    """A certificate authority; its certificate and what it issues are files in one folder."""

    def __init__(self, folder: Path, name: str) -> None:
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"{name}-ca")])
        certificate = (
            _builder(self._name, self._name, self._key.public_key(), signed_by=self._key.public_key())
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_ca_usage(), critical=True)
            .sign(self._key, hashes.SHA256())
        )
        self.certificate = folder / f"{name}.crt"
        """The file with the authority's own certificate."""
        self.certificate.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))

    def issue(
        self, file_name: str, *, user: str, groups: Sequence[str] = (), hosts: Sequence[str] = ()
    ) -> tuple[Path, Path]:
        """Write a certificate and key for `user` in `groups`; with `hosts` it also serves as these names and addresses.

        Returns the two files.
        """
        key = ec.generate_private_key(ec.SECP256R1())
        names = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
        subject = x509.Name([*names, x509.NameAttribute(NameOID.COMMON_NAME, user)])
        purposes = [ExtendedKeyUsageOID.CLIENT_AUTH, *([ExtendedKeyUsageOID.SERVER_AUTH] if hosts else [])]
        builder = _builder(subject, self._name, key.public_key(), signed_by=self._key.public_key())
        builder = builder.add_extension(x509.ExtendedKeyUsage(purposes), critical=False)
        if hosts:
            builder = builder.add_extension(x509.SubjectAlternativeName([_host(h) for h in hosts]), critical=False)
        certificate = builder.sign(self._key, hashes.SHA256())
        certificate_file, key_file = self._folder / f"{file_name}.crt", self._folder / f"{file_name}.key"
        certificate_file.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        _write_key(key_file, key)
        return certificate_file, key_file


def write_signing_keys(folder: Path) -> tuple[Path, Path]:
    """Write the key pair that signs service account tokens; returns the private and the public file."""
    key = ec.generate_private_key(ec.SECP256R1())
    private, public = folder / "service-accounts.key", folder / "service-accounts.pub"
    _write_key(private, key)
    public.write_bytes(
        key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    )
    return private, public


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    public_key: ec.EllipticCurvePublicKey,
    *,
    signed_by: ec.EllipticCurvePublicKey,
) -> x509.CertificateBuilder:
    """What all certificates have. From 3.13 on Python insists on the identifiers of both keys."""
    now = dt.datetime.now(dt.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public_key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(minutes=5))
        .not_valid_after(now + VALID_FOR)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public_key), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signed_by), critical=False)
    )


def _ca_usage() -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=True,
        crl_sign=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _host(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _write_key(path: Path, key: ec.EllipticCurvePrivateKey) -> None:
    path.touch(mode=0o600)
    path.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
