"""ACLs as tests write them: what matters to the case, the rest by default."""

from mirrorlake.kafka.values import Acl


def acl(
    name: str,
    operation: str = "READ",
    permission: str = "ALLOW",
    pattern: str = "LITERAL",
    principal: str = "User:ann",
    host: str = "*",
) -> Acl:
    return Acl(
        pattern, name, principal=principal, host=host, operation=operation, permission=permission
    )
