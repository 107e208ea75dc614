//! The variables that make MPI take a transport, for each library that knows some. What a library
//! does not know it does not read, so that the variables of all are set.

use super::choices::MpiTransport;

/// The variables of a transport, and their values.
pub(crate) fn variables(transport: MpiTransport) -> &'static [(&'static str, &'static str)] {
    match transport {
        MpiTransport::Default => &[],
        MpiTransport::Shm => &[
            ("OMPI_MCA_pml", "ob1"),
            // Release 5 takes this name for its `sm`.
            ("OMPI_MCA_btl", "self,vader"),
            ("UCX_TLS", "sm,self"),
            ("FI_PROVIDER", "shm"),
            ("I_MPI_FABRICS", "shm"),
        ],
        MpiTransport::Tcp => &[
            ("OMPI_MCA_pml", "ob1"),
            ("OMPI_MCA_btl", "self,tcp"),
            ("UCX_TLS", "tcp,self"),
            ("MPIR_CVAR_NOLOCAL", "1"),
            ("FI_PROVIDER", "tcp"),
            ("I_MPI_FABRICS", "ofi"),
        ],
        MpiTransport::Verbs => &[
            ("OMPI_MCA_pml", "ucx"),
            ("OMPI_MCA_pml_ucx_tls", "any"),
            ("OMPI_MCA_pml_ucx_devices", "any"),
            // RC needs UD to be set up, which `rc` includes.
            ("UCX_TLS", "rc,self"),
            ("MPIR_CVAR_NOLOCAL", "1"),
            ("FI_PROVIDER", "verbs"),
            ("I_MPI_FABRICS", "ofi"),
        ],
    }
}

/// The devices that UCX may take, each with its port.
pub(crate) const NET_DEVICES: &str = "UCX_NET_DEVICES";
