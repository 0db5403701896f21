"""Which certificates of a master are trusted, and for which name. Standard library, Python 3.9."""

from __future__ import annotations

import os
import ssl

from tenax.errors import InvalidInput

#: The name that a master's certificate is checked for, instead of the one in its address.
NAME = "DET_MASTER_CERT_NAME"


class _NamedContext(ssl.SSLContext):
    """Checks certificates for one name, whatever the address says."""

    name = ""

    def wrap_socket(self, *arguments, **options):  # type: ignore[no-untyped-def]
        return super().wrap_socket(*arguments, **{**options, "server_hostname": self.name})

    def wrap_bio(self, *arguments, **options):  # type: ignore[no-untyped-def]
        return super().wrap_bio(*arguments, **{**options, "server_hostname": self.name})


def trusting(certificate: str) -> ssl.SSLContext:
    """A context that trusts a PEM file, or what the system trusts where it is "". Raises InvalidInput."""
    name = os.environ.get(NAME, "")
    if not name.isascii() or len(name.split()) > 1:
        raise InvalidInput(f"{NAME} is {name!r}, which is no name of a machine.")
    try:
        if not name:
            return ssl.create_default_context(cafile=certificate or None)
        context = _NamedContext(ssl.PROTOCOL_TLS_CLIENT)
        context.name = name
        if certificate:
            context.load_verify_locations(certificate)
        else:
            context.load_default_certs()
        return context
    except (OSError, ssl.SSLError) as error:
        raise InvalidInput(f"The certificate file {certificate} cannot be read: {error}.") from None


def hint(error: BaseException) -> str:
    """What to do about a certificate that is not trusted."""
    if "Hostname mismatch" in str(error) or "IP address mismatch" in str(error):
        return f"Its certificate is for another name: set {NAME} to one that is in it."
    return "Name its certificate with DET_MASTER_CERT_FILE (or `noverify` for none)."


def is_about_trust(error: BaseException) -> bool:
    """Whether a connection failed since what answers there is not trusted."""
    text = str(error)
    return "CERTIFICATE_VERIFY_FAILED" in text or "certificate verify failed" in text
